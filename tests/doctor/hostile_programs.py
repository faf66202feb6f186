"""Programs that make it hard for a recorder: each ends by itself in a moment, the same every time.

They step an env, so that the recorder is at work, and then do what programs do: fork, start threads, take signals,
write files, leave by every door. `python tests/doctor/hostile_programs.py` lists them.
"""

ENV = """
import os, sys, time
class Corridor:
    def reset(self):
        self.place = 0
        return self.place
    def step(self, action):
        self.place += 1
        return self.place, 1.0, self.place % 5 == 0, {}
env = Corridor()
env.reset()
def work(count=40):
    for _ in range(count):
        env.step(0)
work()
"""

PROGRAMS = {
    "plain": "print('done', env.place)",
    "exit code": "sys.exit(7)",
    "exit words": "sys.exit('no more')",
    "exit nothing": "sys.exit()",
    "exception": "raise ValueError('wrong')",
    "exception chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('a') from e",
    "own excepthook": "sys.excepthook = lambda *a: print('mine', a[0].__name__)\nraise OSError('x')",
    "syntax error": "exec(compile('x = (', 'made.py', 'exec'))",
    "os._exit": "print('gone', flush=True)\nos._exit(5)",
    "sys.exit in atexit": "import atexit\natexit.register(lambda: sys.exit(9))\nprint('last')",
    "atexit writes": "import atexit\natexit.register(lambda: open('late.txt', 'w').write('late'))",
    "atexit order": "import atexit\nfor i in range(3):\n    atexit.register(print, 'at', i)",
    "del at the end": "class D:\n    def __del__(self): print('deleted')\nd = D()",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "killed by itself": "import signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "terminated by itself": "import signal\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(5)",
    "abort": "sys.stdout.flush()\nos.abort()",
    "own sigterm": (
        "import signal\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(3))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(5)"
    ),
    "own sigint": (
        "import signal\nsignal.signal(signal.SIGINT, lambda *a: print('int'))\n"
        "os.kill(os.getpid(), signal.SIGINT)\nwork()\nprint('on')"
    ),
    "own alarm": (
        "import signal\ngot = []\nsignal.signal(signal.SIGALRM, lambda *a: got.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(0.3)\nwork()\nprint(len(got))"
    ),
    "alarm without a handler": "import signal\nsignal.alarm(1)\nwork()\ntime.sleep(5)",
    "asks for the alarm": "import signal\nprint(signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL))",
    "pause": (
        "import signal, threading\nsignal.signal(signal.SIGUSR1, lambda *a: print('usr1'))\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()\nsignal.pause()\nprint('after')"
    ),
    "sigwait": (
        "import signal, threading\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR2)).start()\n"
        "print(signal.sigwait([signal.SIGUSR2]))"
    ),
    "a blocked signal comes early": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\nwork()\ntime.sleep(0.1)\nprint(signal.sigwait([signal.SIGUSR2]))"
    ),
    "wakeup fd": (
        "import signal, socket\na, b = socket.socketpair()\nb.setblocking(False)\nsignal.set_wakeup_fd(b.fileno())\n"
        "time.sleep(0.1)\nwork()\na.setblocking(False)\n"
        "try:\n    print(a.recv(10))\nexcept BlockingIOError:\n    print('quiet')"
    ),
    "fork": "pid = os.fork()\nif pid == 0:\n    work()\n    print('child', flush=True)\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])",
    "fork and the child goes on": "pid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    os._exit(4)\nwork()\nprint('child')",
    "forked child exits": "pid = os.fork()\nif pid == 0:\n    sys.exit(6)\nprint(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))",
    "multiprocessing fork": (
        "import multiprocessing as m\ndef f(x):\n    work()\n    return x * x\n"
        "with m.get_context('fork').Pool(2) as pool:\n    print(pool.map(f, range(5)))"
    ),
    "multiprocessing spawn": (
        "import multiprocessing as m\ndef f(x):\n    return x * x\n"
        "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as pool:\n        print(pool.map(f, range(3)))"
    ),
    "daemon process": (
        "import multiprocessing as m\np = m.get_context('fork').Process(target=time.sleep, args=(60,), daemon=True)\n"
        "p.start()\nwork()\nprint('main')"
    ),
    "threads": (
        "import threading\nts = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in ts]\n[t.join() for t in ts]\nprint(env.place)"
    ),
    "a thread outlives main": (
        "import threading\ndef f():\n    time.sleep(0.3)\n    print('thread')\nthreading.Thread(target=f).start()\nprint('main')"
    ),
    "env in a thread": "import threading\nt = threading.Thread(target=work, args=(200,))\nt.start()\nt.join()\nprint(env.place)",
    "error in a thread": (
        "import threading\nthreading.excepthook = lambda a: print(a.exc_type.__name__)\n"
        "t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()"
    ),
    "asyncio": (
        "import asyncio\nasync def f():\n    for _ in range(5):\n        env.step(0)\n        await asyncio.sleep(0.01)\n"
        "    return 3\nprint(asyncio.run(f()))"
    ),
    "asyncio signal": (
        "import asyncio, signal\nasync def f():\n    done = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, done.set)\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n    await done.wait()\n    work()\nasyncio.run(f())\nprint('heard')"
    ),
    "asyncio subprocess": (
        "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'hi')\n"
        "    return await p.wait()\nprint(asyncio.run(f()), flush=True)"
    ),
    "subprocess": "import subprocess\nwork()\nprint(subprocess.run(['sh', '-c', 'echo out; exit 3'], capture_output=True))",
    "closed stdout": "sys.stdout.close()\nwork()",
    "closed descriptors": "sys.stdout.flush()\nos.close(1)\nos.close(2)\nwork()\nos._exit(2)",
    "replaced stdout": "import io\nsys.stdout = io.StringIO()\nprint('lost')\nwork()",
    "huge output": "for i in range(20000):\n    print('x' * 100, i)\nwork()",
    "output without a newline": "sys.stdout.write('no end')",
    "bytes that are no text": "sys.stdout.buffer.write(bytes(range(256)))\nsys.stderr.buffer.write(b'\\xff\\xfe')",
    "stdin": "print(sys.stdin.read().upper())",
    "input()": "print(input() + '!')",
    "execv": "sys.stdout.flush()\nos.execv(sys.executable, [sys.executable, '-c', 'print(1 + 1); raise SystemExit(8)'])",
    "execv that sleeps": (
        "sys.stdout.flush()\nos.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(0.3); print(4)'])"
    ),
    "execv that fails": "try:\n    os.execv('/no/such', ['no'])\nexcept OSError as e:\n    print(e.errno)\nwork()",
    "execvp": "sys.stdout.flush()\nos.execvp('echo', ['echo', 'by path'])",
    "writes files": "os.makedirs('runs/a', exist_ok=True)\nopen('runs/a/log.csv', 'w').write('1,2')\nopen('m.bin', 'wb').write(b'1' * 99)",
    "appends to a file": "open('count.txt', 'a').write('once\\n')",
    "deletes itself": "os.remove(__file__)\nwork()\nprint(os.path.exists(__file__))",
    "changes folder": "os.makedirs('other', exist_ok=True)\nos.chdir('other')\nopen('here.txt', 'w').write('x')\nwork()",
    "deep recursion": "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\ntry:\n    f(10 ** 6)\nexcept RecursionError:\n    print('deep')",
    "profile of its own": "n = []\nsys.setprofile(lambda *a: n.append(1))\nwork(3)\nsys.setprofile(None)\nprint(len(n) > 0)",
    "trace of its own": "n = []\nsys.settrace(lambda *a: n.append(1))\nwork(3)\nsys.settrace(None)\nprint(len(n) > 0)",
    "looks at itself": "print(__name__, os.path.basename(__file__), sys.argv[1:], __spec__, sorted(k for k in globals() if 'watched' in k))",
    "odd classes": (
        "import enum, typing, dataclasses, abc\n"
        "class Meta(type):\n    def __getattr__(cls, name): raise LookupError(name)\n"
        "    def __setattr__(cls, name, value): raise TypeError('frozen')\n"
        "class A(metaclass=Meta):\n    def step(self, a): return None\n"
        "class B:\n    __module__ = property(lambda self: 'x')\n    def step(self, a): ...\n    def reset(self): ...\n"
        "class C(typing.NamedTuple):\n    step: int\n    reset: int = 0\n"
        "@dataclasses.dataclass(frozen=True)\nclass D:\n    add: int\n    sample: int = 0\n"
        "class E(enum.Enum):\n    step = 1\n    reset = 2\n"
        "class F(abc.ABC):\n    @abc.abstractmethod\n    def step(self, a): ...\n    def reset(self): ...\n"
        "class G:\n    def __init_subclass__(cls, **k): super().__init_subclass__()\n"
        "class H(G, word=1):\n    __slots__ = ('a',)\n    def add(self, x): return x\n    def sample(self): return 2\n"
        "print(A().step(0), C(1), D(3), list(E), H().add(1), H().sample(), B().step(0))"
    ),
    "an env that raises": "class Bad(Corridor):\n    def step(self, a): raise RuntimeError('env')\ntry:\n    Bad().step(0)\nexcept RuntimeError as e:\n    print(e)",
    "an uncaught error in an env": "class Bad(Corridor):\n    def step(self, a): return 1 / (a - a)\nBad().step(3)",
    "an error while another is handled in an env": (
        "class Bad(Corridor):\n    def step(self, a):\n        try:\n            return super().step(1 / 0)\n"
        "        except ZeroDivisionError:\n            raise KeyError(a)\n"
        "try:\n    Bad().step(1)\nexcept KeyError as e:\n    raise RuntimeError('outer') from e"
    ),
    "a warning for the caller of an env": (
        "import warnings\nclass Warns(Corridor):\n    def step(self, a):\n"
        "        warnings.warn('old', stacklevel=2)\n        return super().step(a)\n"
        "w = Warns()\nw.reset()\nfor _ in range(3):\n    w.step(0)"
    ),
    "an env that returns itself": "class Odd(Corridor):\n    def step(self, a): return self\nprint(Odd().step(0) is not None)",
    "odd rewards": (
        "class Odd(Corridor):\n    def __init__(self, r): self.r = r\n    def step(self, a): return 0, self.r, False, {}\n"
        "class Evil:\n    shape = property(lambda s: 1 / 0)\n    dtype = 1\n    def __bool__(self): raise ValueError\n"
        "for r in (None, 'x', [], object(), Evil(), float('nan'), 10 ** 400):\n    Odd(r).step(0)\nprint('fine')"
    ),
    "random numbers": "import random\nrandom.seed(3)\nwork()\nprint(random.random(), random.sample(range(9), 3), random.choices([1, 2], k=3))",
    "logging": "import logging\nlogging.basicConfig(level=20, format='%(levelname)s %(funcName)s %(lineno)d %(message)s')\nlogging.info('hello %s', 1)",
    "warnings": "import warnings\nwarnings.warn('careful', DeprecationWarning)\nwork()",
    "garbage": "import gc\nx = []\nx.append(x)\ndel x\nprint(gc.collect() >= 1, len(gc.callbacks) < 9)",
    "module named like ours": "import watch\nprint(watch.mine)",
}
FILES = {"module named like ours": {"watch.py": "mine = 'yes'\n"}}
"""What lies beside the script."""

if __name__ == "__main__":
    print("\n".join(PROGRAMS))
