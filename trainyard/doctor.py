"""The command `doctor`: looks at an account and a deployment, changes nothing, and says in a line each what is well and what to do."""

from __future__ import annotations

from trainyard.account import list_checks, read_caller
from trainyard.deployment import begin_session
from trainyard.diagnoses import Diagnosis, Examination, Level
from trainyard.options import Command
from trainyard.stops import CommandExit, word_problem


def doctor(command: Command) -> int:
    """Returns the exit code: 1 where anything is wrong."""
    printer, file = command.printer, command.find_settings()
    settings = command.parse_settings()
    region = settings.home_region
    begin_session(region=region, profile=command.profile, endpoint_url=command.endpoint_url)
    worst = CommandExit.DONE
    checks = [
        Examination(subject="credentials", find=lambda: read_caller(region)),
        *list_checks(settings, file.qualifier),
    ]
    for check in checks:
        findings = examine(check)
        for one in findings:
            printer.document({"check": check.subject, "level": one.level.value, "what": one.what, "advice": one.advice})
            if not printer.as_json:
                printer.say(
                    f"{one.level.value:<5}  {check.subject}: {one.what}{f'; {one.advice}' if one.advice else ''}"
                )
        if any(one.level is Level.WRONG for one in findings):
            worst = CommandExit.FAILED
            if check.subject == "credentials":
                return worst  # nothing else can be read
    return worst


def examine(check: Examination) -> list[Diagnosis]:
    """Returns what a check finds; what AWS does not let the caller read is a warning, and never taken for well. Without
    credentials no account can be read."""
    try:
        return list(check.find())
    except Exception as problem:
        level = Level.WRONG if check.subject == "credentials" else Level.WARN
        return [Diagnosis(level, f"not known: {word_problem(problem)}")]
