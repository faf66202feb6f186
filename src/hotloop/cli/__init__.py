"""The command line: one verb per file, which parses, calls and prints.

Files:
    arguments.py      How every verb reads its words and prints its answer
    compare.py        `hotloop compare ARM [overrides] ARM [overrides] ... --seeds N [-- --any.setting VALUE]`
    compare_options.py  What `hotloop compare` can be told beside its arms and their settings
    console.py        Rich's console as all verbs use it: text is literal, whoever wrote it, and a display may be
                      lost
    dashboard.py      `hotloop dashboard [FOLDER]`
    debug_nan.py      `hotloop debug-nan RUN`
    doctor.py         `hotloop doctor PRESET|SCRIPT.py`
    doctor_options.py  The options of `hotloop doctor`
    envs.py           `hotloop envs`, `hotloop envs check ID`
    evaluate.py       `hotloop evaluate RUN`, or `hotloop evaluate PRESET --policy NAME`
    export.py         `hotloop export RUN --onnx FILE`
    job.py            `hotloop job run LIST --index N` and `hotloop job list LIST`
    log.py            `hotloop log RUN --tensorboard FOLDER | --wandb PROJECT`
    main.py           `hotloop VERB ...`: one verb per file; heavy imports wait until a verb runs, so that --help
                      answers at once
    progress.py       How a run is getting on: a live bar on a terminal, plain lines elsewhere; always on stderr
    prove.py          `hotloop prove FILE[::NAME] ...`, `--env`, `--module`, `--script`
    prove_answers.py  What `hotloop prove` answers: proofs in words, rows of cases as a table, both as JSON
    prove_own.py      What `hotloop prove` is asked for: the options of its subjects, and each as a task by name
    report.py         `hotloop report RUN`
    resume.py         `hotloop resume RUN`
    runs.py           `hotloop runs [FOLDER]`
    settings.py       `hotloop settings dqn`, `hotloop settings dqn replay`, `hotloop settings dqn --toml`, `hotloop
                      settings PRESET`
    train.py          `hotloop train PRESET|FILE.toml [--any.setting VALUE]`
    tune.py           `hotloop tune PRESET [--any.setting VALUE] --search NAME=VALUES ... --trials N`
    watch.py          `hotloop watch RUN`
    workload.py       `hotloop WORKLOAD`, `hotloop WORKLOAD VERB ...`: what one problem brings along
"""
