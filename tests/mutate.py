"""Mutation tests of one module: every mutant runs the chosen tests in a process forked for it.

    NUMBA_DISABLE_JIT=1 python -m tests.mutate boostplugins.masks tests/test_masks.py
    NUMBA_DISABLE_JIT=1 python -m tests.mutate boostplugins.families.gamma tests/families --only gamma

Cosmic-ray makes the mutants (``pip install cosmic-ray``). Left out are those of annotations, bits and
shifts in place of arithmetic, which only stop at a type, and decorators taken off. Where the body of a
function changes, the child is forked from a process that has imported the package and collected the
tests, and puts the new code into the function; it cannot show what that function does while modules are
imported. Any other mutant is imported anew. Tests run the quickest first, up to the first that fails;
one that takes five times the processor time that it takes without a mutant, and two seconds, ends it.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import importlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

# Imported before the first fork; none of them imports the package.
LIBRARIES = "numba pandas scipy.stats scipy.optimize sklearn.base scoringrules hypothesis.extra.numpy"
LEFT_OUT = ("RShift", "LShift", "BitXor", "RemoveDecorator", "Variable")
BITS = ("BinaryOperator_BitOr_BitAnd", "BinaryOperator_BitAnd_BitOr")
IMPORT_SECONDS, SLOWER, SLACK = 20.0, 5.0, 2.0
MEMORY = 4 * 2**30
ALIVE, KILLED, BROKEN, TIMEOUT = "alive", "killed", "broken", "timeout"
Key = tuple[str, int]


@dataclass(frozen=True)
class Mutant:
    """One change: where, the line before and after, the whole module, and the functions changed.

    `functions` is None where more than bodies of functions changed.
    """

    line: int
    change: str
    code: CodeType
    functions: dict[Key, CodeType] | None


def usable(name: str) -> bool:
    """Whether an operator of cosmic-ray makes mutants that are more than errors of types."""
    bits = "BitOr" in name or "BitAnd" in name
    return not any(word in name for word in LEFT_OUT) and (not bits or name.endswith(BITS))


def annotated(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the annotations of a source are."""
    nodes = ast.walk(ast.parse(source))
    parts = [getattr(node, part, None) for node in nodes for part in ("annotation", "returns")]
    return [((p.lineno, p.col_offset), (p.end_lineno, p.end_col_offset)) for p in parts if p is not None]


def candidates(source: str) -> list[tuple[Any, int]]:
    """Operators and which of their places, for every mutant of a source."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.operators.provider import OperatorProvider

    nodes, spans = list(ast_nodes(get_ast(source))), annotated(source)
    provider, found = OperatorProvider(), []
    for name in filter(usable, provider):
        operator = provider[name]()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for k, (start, _) in enumerate(places):
            if not any(first <= start < last for first, last in spans):
                found.append((operator, k))
    return found


def split(code: CodeType) -> tuple[dict[Key, CodeType], list[Any]]:
    """Functions of a module, and what else its import runs."""
    functions: dict[Key, CodeType] = {}
    plain = [const for const in code.co_consts if not isinstance(const, CodeType)]
    rest: list[Any] = [code.co_code, code.co_names, plain]
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        at_import = inner.co_name in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
        if at_import or not inner.co_flags & 2:  # 2: new locals, which bodies of classes have not
            more, other = split(inner)
            functions |= more
            rest.append(other)
        else:
            functions[inner.co_qualname, inner.co_firstlineno] = inner
    return functions, rest


def mutants(source: str, path: Path, most: int, seed: int) -> Iterator[Mutant]:
    """Up to `most` mutants, drawn at random where there are more."""
    from cosmic_ray.mutating import mutate_code

    left, made = candidates(source), 0
    functions, rest = split(compile(source, str(path), "exec"))
    random.Random(seed).shuffle(left)
    for operator, k in left:
        text = mutate_code(source, operator, k)
        try:
            code = compile(text, str(path), "exec")
        except SyntaxError:  # cosmic-ray takes the stars of {**a} for a power
            continue
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)):  # 1e100 + 1
            continue
        old, new = source.splitlines(), text.splitlines()
        at = next(i for i, pair in enumerate(zip(old, new)) if pair[0] != pair[1])
        found, other = split(code)
        inner = {key: value for key, value in found.items() if value != functions.get(key)}
        change = f"{old[at].strip()}  ->  {new[at].strip()}"
        yield Mutant(at + 1, change, code, inner if other == rest else None)
        made += 1
        if made == most:
            return


@dataclass
class Import(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Puts code in a module's place."""

    module: str
    path: Path
    code: CodeType

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module:
            return None
        inner = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=inner
        )

    def exec_module(self, module: Any) -> None:
        exec(self.code, module.__dict__)


@dataclass
class Runner:
    """Plugin that chooses and orders tests, runs them up to the first failure, and tells a pipe of it."""

    pipe: int
    only: str
    seconds: dict[str, float] = field(default_factory=dict)
    then: Callable[[Runner, list[Any]], None] | None = None
    failed: bool = False

    def tell(self, *words: object) -> None:
        os.write(self.pipe, ("\t".join(map(str, words)) + "\n").encode())

    def wanted(self, item: Any) -> bool:
        """Whether a test is of the families asked for, or of none."""
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        names = {str(getattr(value, "name", value)) for value in values if not isinstance(value, float)}
        return not self.only or not values or bool(names & set(self.only.split(",")))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self.wanted(item)]
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def run(self, items: list[Any]) -> bool:
        """Run tests up to the first that fails; whether none does."""
        for item in items:
            self.tell("start", item.nodeid)
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SLOWER * self.seconds.get(item.nodeid, 60.0) + SLACK)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                return False
            self.seconds[item.nodeid] = time.process_time() - begun
            self.tell("passed", item.nodeid, self.seconds[item.nodeid])
        return True

    def pytest_runtestloop(self, session: Any) -> None:
        if session.testsfailed:
            os._exit(2)
        if not self.run(session.items):
            os._exit(1)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        if self.then is not None:
            self.then(self, session.items)
        os._exit(0)


def forked(work: Callable[[int], None]) -> tuple[str, list[list[str]]]:
    """Do work in a child, which is given a pipe; what became of it and what it told."""
    end, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(end)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            work(pipe)
        finally:
            os._exit(2)
    os.close(pipe)
    with os.fdopen(end) as stream:
        lines = [line.rstrip("\n").split("\t") for line in stream]
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) == signal.SIGPROF else KILLED, lines
    return {0: ALIVE, 1: KILLED}.get(os.WEXITSTATUS(status), BROKEN), lines


def collect(runner: Runner, tests: list[str]) -> None:
    """Import and collect the tests, then run them; never returns."""
    signal.setitimer(signal.ITIMER_PROF, IMPORT_SECONDS)
    options = ["-x", "-q", "-s", "--assert=plain", "--tb=no", "-m", "not slow", "-p", "no:cacheprovider"]
    os._exit(2 if pytest.main([*options, *tests], plugins=[runner]) else 0)


def patched(runner: Runner, items: list[Any], module: str, path: Path, some: list[Mutant]) -> None:
    """Run each mutant of function bodies in a child of this process, which has run the tests itself.

    Caches of the module are emptied, others kept: tables take long.
    """
    items.sort(key=lambda item: runner.seconds[item.nodeid])
    held = gc.get_objects()
    owners: dict[Key, list[FunctionType]] = {}
    for f in held:
        if type(f) is FunctionType and f.__code__.co_filename == str(path):
            owners.setdefault((f.__code__.co_qualname, f.__code__.co_firstlineno), []).append(f)
    caches = [c for c in held if type(c) is functools._lru_cache_wrapper]
    caches = [c for c in caches if getattr(c.__wrapped__, "__module__", None) == module]
    del held
    gc.freeze()

    def work(pipe: int, mutant: Mutant) -> None:
        for key, code in (mutant.functions or {}).items():
            for function in owners[key]:
                function.__code__ = code
        for cache in caches:
            cache.cache_clear()
        runner.pipe = pipe
        os._exit(0 if runner.run(items) else 1)

    for mutant in some:
        outcome, lines = forked(functools.partial(work, mutant=mutant))
        runner.tell(outcome, mutant.line, mutant.change, lines[-1][1] if lines else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--only", default="", help="families, by name, whose parametrised tests run")
    parser.add_argument("--most", type=int, default=40, help="mutants at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=Path, help="output of an earlier run: only what it found alive")
    args = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for library in LIBRARIES.split():
        importlib.import_module(library)
    path = Path(*args.module.split(".")).absolute()
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    source = path.read_text()
    out = sys.stdout.write

    chosen = list(mutants(source, path, args.most, args.seed))
    if args.again:
        alive = {line.removeprefix(ALIVE).strip() for line in args.again.read_text().splitlines()}
        chosen = [mutant for mutant in chosen if f"{mutant.line}: {mutant.change}" in alive]
    quick = [mutant for mutant in chosen if mutant.functions is not None]
    serve = functools.partial(patched, module=args.module, path=path, some=quick)
    outcome, lines = forked(lambda pipe: collect(Runner(pipe, args.only, then=serve), args.tests))
    if outcome != ALIVE:
        sys.exit(f"without a mutant: {outcome} {lines[-1:]}")
    seconds = {line[1]: float(line[2]) for line in lines if line[0] == "passed"}
    total, counts = sum(seconds.values()), Counter[str]()
    out(f"{args.module}: {len(candidates(source))} mutants; {len(seconds)} tests, {total:.1f} s\n")

    def report(outcome: str, line: object, change: str, test: str) -> None:
        counts[outcome] += 1
        out(f"{outcome:8}{line!s:>4}: {change}  {'' if outcome == ALIVE else test.split('::')[-1]}\n")
        sys.stdout.flush()

    for words in lines:
        if words[0] not in ("start", "passed"):
            report(*words)
    for mutant in (mutant for mutant in chosen if mutant.functions is None):
        sys.meta_path.insert(0, Import(args.module, path, mutant.code))
        outcome, lines = forked(lambda pipe: collect(Runner(pipe, args.only, seconds), args.tests))
        sys.meta_path.pop(0)
        report(outcome, mutant.line, mutant.change, lines[-1][1] if lines else "")
    out(f"{args.module}: {dict(counts)} of {counts.total()} ({len(quick)} of bodies); ")
    out(f"{sum(os.times()[:4]):.0f} s of processor time\n")


if __name__ == "__main__":
    main()
