"""Refusals of builds whose context is a commit of a git repository. The repositories are made by the test that runs the table."""

from __future__ import annotations

from tools.refusals.jobs.git import FILES, HEADS, HOST, REF, url

ROWS = (
    (
        "a branch for a context",
        {"git": url("good"), "ref": "main"},
        "context: ref: main is not the whole hash of a commit, and a branch, a tag or a short hash may mean another commit tomorrow; "
        f"allowed: {REF}",
    ),
    (
        "a commit at a host that the settings do not list",
        {"git": "https://internal.example.com/owner/good.git", "ref": HEADS["good"]},
        f"context: internal.example.com is not a host that code may be fetched from; allowed: {HOST} (git_hosts in cdk.json)",
    ),
    (
        "a commit that its host does not have",
        {"git": url("good"), "ref": "1" * 40},
        f"context: {url('good')} has no commit {'1' * 40}; allowed: a commit that was pushed to the repository",
    ),
    (
        "a commit without a Dockerfile",
        {"git": url("good"), "ref": HEADS["good"]},
        f"context: {url('good')}@{HEADS['good'][:12]} has no Dockerfile at its root; allowed: an archive with a file named Dockerfile at "
        "its root",
    ),
    (
        "a commit with a submodule",
        {"git": url("submodule"), "ref": HEADS["submodule"]},
        f"context: {url('submodule')} has the submodule 'third', whose files are in another repository; allowed: {FILES}",
    ),
)
"""What is wrong, the context that is given, and the answer."""
