"""`python -m hotloop`. Python puts the current folder first on the path, which goes before a file there is imported."""

from hotloop.core.children import leave_out_current_folder

leave_out_current_folder()

from hotloop.cli.main import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main())
