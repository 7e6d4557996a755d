"""What a change of the code changes in CloudFormation, on small templates; and once on two trees of the product."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rehearsal.assembly import inputs
from rehearsal.checkout import NoCommit, check_out
from tools.synth_diff.__main__ import main
from tools.synth_diff.changes import Kind, ResourceChange, StackChange, compare_stacks
from tools.synth_diff.page import MOST_IDS, MOST_VALUES, format_page, to_document
from tools.synth_diff.trees import Comparison, compare_pins, compare_trees
from tools.synth_diff.values import LONGEST, ValueChange, find_differences

ROOT = Path(__file__).parents[2]
QUEUE, FUNCTION, ROLE, POLICY = "AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::IAM::Policy"
GROUP, EGRESS = "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}


def resource(kind: str, properties: dict[str, Any] | None = None, **attributes: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties or {}, **attributes}


def compare(
    before: dict[str, Any], after: dict[str, Any], outputs: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
) -> StackChange:
    """What changes of a stack with these resources, by logical id."""
    old, new = ({"Resources": one, "Outputs": outs} for one, outs in zip((before, after), outputs, strict=True))
    return compare_stacks({"stack": old}, {"stack": new}).get("stack", StackChange())


def become(before: dict[str, Any], after: dict[str, Any]) -> ResourceChange:
    """What becomes of the one resource that changes."""
    (change,) = compare(before, after).resources
    return change


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        (QUEUE, {"VisibilityTimeout": 1}, {"VisibilityTimeout": 2}, Kind.UPDATED),
        (QUEUE, {"QueueName": "a"}, {"QueueName": "b"}, Kind.REPLACED),
        (QUEUE, {"QueueName": "a"}, {}, Kind.REPLACED),
        (QUEUE, {"QueueName": "a", "DelaySeconds": 1}, {"QueueName": "b", "DelaySeconds": 2}, Kind.REPLACED),
        ("AWS::DynamoDB::Table", {"KeySchema": [{"KeyType": "HASH"}]}, {"KeySchema": [{"KeyType": "RANGE"}]}, Kind.MAY_BE_REPLACED),
        ("AWS::EKS::Cluster", {}, {"KubernetesNetworkConfig": {"IpFamily": "ipv6"}}, Kind.REPLACED),
        ("AWS::EKS::Cluster", {}, {"KubernetesNetworkConfig": {"ElasticLoadBalancing": {}}}, Kind.UPDATED),
        ("Custom::Drain", {"ServiceToken": "a"}, {"ServiceToken": "b"}, Kind.REPLACED),
        ("Custom::Drain", {"Regions": ["a"]}, {"Regions": ["a", "b"]}, Kind.UPDATED),
        ("AWS::No::Such", {"A": 1}, {"A": 2}, Kind.UNKNOWN),
    ],
)  # fmt: skip
def test_the_registry_says_what_becomes_of_a_changed_resource(
    kind: str, before: dict[str, Any], after: dict[str, Any], expected: Kind
) -> None:
    assert become({"One": resource(kind, before)}, {"One": resource(kind, after)}).kind is expected


def test_a_resource_that_is_only_treated_otherwise_is_not_updated() -> None:
    assert become({"One": resource(QUEUE)}, {"One": resource(QUEUE, DependsOn=["Other"])}).kind is Kind.SETTINGS


def test_equal_templates_have_no_change_whatever_their_order() -> None:
    old = {"A": resource(QUEUE, {"Tags": tags("a", "b")}, DependsOn=["B", "C"]), "P": attached(GET, PUT)}
    new = {"P": attached(GET, PUT), "A": resource(QUEUE, {"Tags": tags("b", "a")}, DependsOn=["C", "B"])}
    assert compare(old, new).is_empty


def tags(*names: str) -> list[dict[str, str]]:
    return [{"Key": name, "Value": name} for name in names]


def test_a_resource_of_another_type_under_the_same_id_is_refused() -> None:
    change = become({"One": resource(QUEUE)}, {"One": resource("AWS::SNS::Topic")})
    assert change.kind is Kind.REPLACED
    assert QUEUE in change.refused


def test_an_equal_resource_under_another_id_is_a_replacement_and_so_are_those_that_refer_to_it() -> None:
    def role_and_policy(role: str, policy: str) -> dict[str, Any]:
        referring = attached(statement("s3:GetObject"), role=role)
        return {role: resource(ROLE, {"AssumeRolePolicyDocument": TRUST}), policy: referring | {"DependsOn": [role]}}

    change = compare(role_and_policy("Role", "Policy"), role_and_policy("OtherRole", "OtherPolicy"))
    assert {one.logical_id: (one.kind, one.new_id) for one in change.resources} == {
        "Role": (Kind.REPLACED, "OtherRole"),
        "Policy": (Kind.REPLACED, "OtherPolicy"),
    }
    assert (change.rights.wider, change.rights.narrower) == ([], [])


def test_a_resource_that_differs_from_the_removed_one_is_only_added() -> None:
    change = compare({"Old": resource(QUEUE)}, {"New": resource(QUEUE, {"DelaySeconds": 1})})
    assert {one.logical_id: one.kind for one in change.resources} == {"Old": Kind.REMOVED, "New": Kind.ADDED}


def test_as_many_equal_resources_are_replaced_as_there_are_new_ones() -> None:
    change = compare({"A": resource(QUEUE), "B": resource(QUEUE)}, {"C": resource(QUEUE)})
    assert [(one.logical_id, one.kind, one.new_id) for one in change.resources] == [
        ("A", Kind.REPLACED, "C"),
        ("B", Kind.REMOVED, ""),
    ]


def test_what_depends_for_ever_on_a_replaced_resource_may_be_replaced_and_so_on() -> None:
    def network(cidr: str) -> dict[str, Any]:
        return {
            "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
            "Subnet": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}}),
            "Nat": resource("AWS::EC2::NatGateway", {"SubnetId": {"Fn::GetAtt": ["Subnet", "SubnetId"]}}),
            "User": resource(FUNCTION, {"Environment": {"Variables": {"VPC": {"Ref": "Vpc"}}}}),
        }

    change = compare(network("10.0.0.0/16"), network("10.1.0.0/16"))
    assert {one.logical_id: one.kind for one in change.resources} == {
        "Vpc": Kind.REPLACED,
        "Subnet": Kind.MAY_BE_REPLACED,
        "Nat": Kind.MAY_BE_REPLACED,
    }
    assert {one.why for one in change.resources} == {"", "its VpcId is that of Vpc", "its SubnetId is that of Subnet"}


@pytest.mark.parametrize(
    ("kind", "attributes", "loss"),
    [
        (QUEUE, {}, "DeletionPolicy Delete"),
        (QUEUE, {"DeletionPolicy": "Retain"}, ""),
        (QUEUE, {"DeletionPolicy": "RetainExceptOnCreate"}, ""),
        (QUEUE, {"UpdateReplacePolicy": "Retain"}, "DeletionPolicy Delete"),
        ("AWS::RDS::DBCluster", {}, "DeletionPolicy Snapshot"),
        ("AWS::ECR::Repository", {}, "DeletionPolicy Delete"),
        (ROLE, {}, ""),
    ],
)
def test_what_is_removed_loses_the_data_that_it_does_not_keep(kind: str, attributes: dict[str, Any], loss: str) -> None:
    assert become({"One": resource(kind, **attributes)}, {}).loses == loss


def test_what_is_replaced_loses_its_data_unless_its_new_template_keeps_the_old_one() -> None:
    old = {"One": resource(QUEUE, {"QueueName": "a"}, DeletionPolicy="Retain", UpdateReplacePolicy="Delete")}
    for policy, loss in (("Delete", "UpdateReplacePolicy Delete"), ("Retain", "")):
        new = {"One": resource(QUEUE, {"QueueName": "b"}, DeletionPolicy="Retain", UpdateReplacePolicy=policy)}
        assert become(old, new).loses == loss


def test_data_that_was_kept_and_is_no_longer_is_reported_before_it_is_lost() -> None:
    kept, passing = ({"DeletionPolicy": one, "UpdateReplacePolicy": one} for one in ("Retain", "Delete"))
    change = become({"One": resource(QUEUE, **kept)}, {"One": resource(QUEUE, **passing)})
    assert (change.kind, change.loses) == (Kind.SETTINGS, "from now on DeletionPolicy Delete")
    assert become({"One": resource(QUEUE, **passing)}, {"One": resource(QUEUE, **kept)}).loses == ""


@pytest.mark.parametrize(
    ("kind", "before", "after", "refused"),
    [
        (ROLE, {"RoleName": "a", "Path": "/"}, {"RoleName": "a", "Path": "/b/"}, "RoleName a is taken until the old one is deleted"),
        (ROLE, {"RoleName": "a", "Path": "/"}, {"RoleName": "b", "Path": "/b/"}, ""),
        (ROLE, {"Path": "/"}, {"Path": "/b/"}, ""),
        (ROLE, {"RoleName": "a", "Description": "a"}, {"RoleName": "a", "Description": "b"}, ""),
        ("AWS::EC2::SubnetRouteTableAssociation", {"SubnetId": "a"}, {"SubnetId": "b"}, ""),
    ],
)  # fmt: skip
def test_a_replacement_needs_another_physical_name(
    kind: str, before: dict[str, Any], after: dict[str, Any], refused: str
) -> None:
    assert become({"One": resource(kind, before)}, {"One": resource(kind, after)}).refused == refused


def test_a_named_resource_cannot_get_another_logical_id() -> None:
    named = resource(QUEUE, {"QueueName": "letters"})
    assert become({"Old": named}, {"New": named}).refused == "QueueName letters is taken until the old one is deleted"


def deployment(queue: dict[str, Any], export: str | None = "queue", *, imported: bool = True) -> dict[str, Any]:
    outputs = {"Out": {"Value": {"Ref": "Queue"}, "Export": {"Name": export}}} if export else {}
    user = resource(FUNCTION, {"Environment": {"Variables": {"QUEUE": {"Fn::ImportValue": "queue"}}}})
    return {
        "first": {"Resources": {"Queue": resource(QUEUE, queue)}, "Outputs": outputs},
        "second": {"Resources": {"User": user} if imported else {}},
    }


@pytest.mark.parametrize(
    ("after", "verb"),
    [(deployment({"QueueName": "b"}), "changes"), (deployment({"QueueName": "a"}, None), "goes")],
)
def test_an_export_in_use_can_neither_change_nor_go(after: dict[str, Any], verb: str) -> None:
    before = deployment({"QueueName": "a"})
    assert compare_stacks(before, after)["first"].refused == (f"the export queue {verb}, which is imported by second",)


def test_an_export_that_nothing_imports_or_that_stays_may_be_exported() -> None:
    unused = deployment({"QueueName": "a"}, imported=False)
    assert compare_stacks(unused, deployment({"QueueName": "b"}))["first"].refused == ()
    used = deployment({"DelaySeconds": 1})
    assert compare_stacks(used, deployment({"DelaySeconds": 2}))["first"].refused == ()


def test_outputs_and_parameters_that_change_are_listed() -> None:
    (change,) = compare({}, {}, ({"Out": {"Value": "a"}}, {"Out": {"Value": "b"}})).others
    assert change.describe() == 'Outputs.Out.Value: "a" -> "b"'


def joined(*parts: Any) -> dict[str, Any]:
    return {"Fn::Join": ["", list(parts)]}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"A": 1}, {"A": 2}, ["A: 1 -> 2"]),
        ({}, {"A": "x"}, ['A: (none) -> "x"']),
        ({"A": {"Ref": "B"}}, {"A": {"Fn::GetAtt": ["C", "Arn"]}}, ['A: "${B}" -> "${C.Arn}"']),
        ({"A": joined("x", {"Ref": "B"})}, {"A": {"Fn::Sub": "x${B}"}}, []),
        (
            {"A": joined('{"S": {"T": 1}, "R": "', {"Ref": "B"}, '"}')},
            {"A": joined('{"R":"', {"Ref": "B"}, '","S":{"T":2}}')},
            ["A.S.T: 1 -> 2"],
        ),
        ({"A": tags("a", "b")}, {"A": [*tags("b"), {"Key": "a", "Value": "c"}]}, ['A[a].Value: "a" -> "c"']),
        ({"A": ["x", "y"]}, {"A": ["x", "z"]}, ['A[1]: "y" -> "z"']),
        ({"A": ["x", "y"]}, {"A": ["y"]}, ['A[-]: "x" -> (none)']),
        ({"A": ["x"]}, {"A": ["y", "x", "x"]}, ['A[+]: (none) -> "x"', 'A[+]: (none) -> "y"']),
        ({"DependsOn": ["x", "y"]}, {"DependsOn": ["y", "z"]}, ['DependsOn[-]: "x" -> (none)', 'DependsOn[+]: (none) -> "z"']),
        ({"P": {"Statement": [1]}}, {"P": {"Statement": [2]}}, ["P: see the rights"]),
    ],
)  # fmt: skip
def test_the_smallest_values_that_differ_are_shown(
    before: dict[str, Any], after: dict[str, Any], lines: list[str]
) -> None:
    assert [one.describe() for one in find_differences(before, after)] == lines


def test_of_long_texts_what_differs_is_shown() -> None:
    shared = "x" * 3 * LONGEST
    line = ValueChange(("A",), f"{shared}old{shared}", f"{shared}new{shared}").describe()
    assert line == f"A: ...{'x' * 12}old{'x' * 12}... -> ...{'x' * 12}new{'x' * 12}..."
    assert len(ValueChange(("A",), "a", "b" * 10_000).describe()) < 3 * LONGEST


def statement(*actions: str, at: Any = "*", deny: bool = False, **conditions: Any) -> dict[str, Any]:
    found = {"Effect": "Deny" if deny else "Allow", "Action": list(actions), "Resource": at}
    return found | ({"Condition": conditions} if conditions else {})


def attached(*statements: dict[str, Any], role: str = "Role") -> dict[str, Any]:
    return resource(POLICY, {"Roles": [{"Ref": role}], "PolicyDocument": {"Statement": list(statements)}})


GET, PUT = statement("s3:GetObject", at="arn:b/*"), statement("s3:PutObject", at="arn:b/*")
HERE = {"aws:RequestedRegion": ["eu-central-1"]}
BOTH = {"aws:RequestedRegion": ["eu-central-1", "us-east-1"]}
NOT_ALL: dict[str, Any] = {"Effect": "Allow", "NotAction": ["s3:*"], "Resource": "*"}


@pytest.mark.parametrize(
    ("before", "after", "wider", "narrower"),
    [
        ([GET], [GET, PUT], ["Role may s3:PutObject on arn:b/*"], []),
        ([GET, PUT], [PUT], [], ["no longer: Role may s3:GetObject on arn:b/*"]),
        ([GET, PUT], [statement("s3:PutObject", "s3:GetObject", at=["arn:b/*"])], [], []),
        ([GET], [statement("s3:Get*", at="arn:b/*")], ["Role may s3:Get* on arn:b/*"], []),
        ([statement("s3:Get*", at="arn:b/*")], [statement("s3:getobject", at="arn:b/x")], [], ["no longer: Role may s3:Get* on arn:b/*"]),
        ([statement("s3:GetObject?", at="a")], [statement("s3:GetObject*", at="a")], ["Role may s3:GetObject* on a"], []),
        ([statement("a:B", StringEquals=HERE)], [statement("a:B")], ["Role may a:B on *"], []),
        ([statement("a:B")], [statement("a:B", StringEquals=HERE)], [], ["no longer: Role may a:B on *"]),
        (
            [statement("a:B", StringEquals=HERE)],
            [statement("a:B", StringEquals=BOTH)],
            ["Role may a:B on * if StringEquals aws:RequestedRegion eu-central-1 or us-east-1"],
            [],
        ),
        (
            [statement("a:B", StringNotEquals=HERE)],
            [statement("a:B", StringNotEquals=BOTH)],
            [],
            ["no longer: Role may a:B on * if StringNotEquals aws:RequestedRegion eu-central-1"],
        ),
        (
            [statement("a:B", Bool={"x": "true"})],
            [statement("a:B", Bool={"x": "false"})],
            ["Role may a:B on * if Bool x false"],
            ["no longer: Role may a:B on * if Bool x true"],
        ),
        ([statement("a:B", deny=True)], [], ["no longer: Role must not a:B on *"], []),
        ([], [statement("a:B", deny=True)], [], ["Role must not a:B on *"]),
        ([GET], [GET, statement("s3:*", deny=True)], [], ["Role must not s3:* on *"]),
        (
            [NOT_ALL],
            [NOT_ALL | {"NotAction": ["s3:Get"]}],
            ['Role may all but ["s3:Get"] on *'],
            ['no longer: Role may all but ["s3:*"] on *'],
        ),
    ],
)  # fmt: skip
def test_rights_that_another_right_covers_are_none_more(
    before: list[dict[str, Any]], after: list[dict[str, Any]], wider: list[str], narrower: list[str]
) -> None:
    rights = compare({"Policy": attached(*before)}, {"Policy": attached(*after)}).rights
    assert (rights.wider, rights.narrower) == (wider, narrower)


def test_a_right_that_moves_to_another_policy_of_the_role_is_none_more_and_none_less() -> None:
    rights = compare({"A": attached(GET, PUT)}, {"A": attached(GET), "B": attached(PUT)}).rights
    assert (rights.wider, rights.narrower) == ([], [])


def trusted(*principals: str, **more: Any) -> dict[str, Any]:
    document = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": list(principals)}, "Action": "sts:AssumeRole"}]}
    return resource(ROLE, {"AssumeRolePolicyDocument": document, **more})


def permitted(**source: str) -> dict[str, Any]:
    called = {"Action": "lambda:InvokeFunction", "FunctionName": {"Ref": "Function"}, "Principal": "s3.amazonaws.com"}
    return resource("AWS::Lambda::Permission", called | source)


def carried(kind: str, field: str, principal: Any) -> dict[str, Any]:
    document = {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "kms:Decrypt", "Resource": "*"}]}
    return resource(kind, {field: document})


RULE = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
CLOSED = {"SecurityGroupEgress": [{"IpProtocol": "icmp", "CidrIp": "255.255.255.255/32"}]}


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        (trusted("a"), trusted("a", "b"), "b may sts:AssumeRole on One"),
        (trusted("a"), trusted("a", ManagedPolicyArns=["arn:admin"]), "One may do all that is allowed by on arn:admin"),
        (
            trusted("a", PermissionsBoundary="arn:limits"),
            trusted("a"),
            "no longer: One must not do what is not allowed by on arn:limits",
        ),
        (
            permitted(SourceAccount="1"),
            permitted(),
            "s3.amazonaws.com may lambda:InvokeFunction on Function",
        ),
        (
            carried("AWS::KMS::Key", "KeyPolicy", {"Service": "a"}),
            carried("AWS::KMS::Key", "KeyPolicy", "*"),
            "* may kms:Decrypt on One",
        ),
        (
            resource(GROUP, CLOSED),
            resource(GROUP, CLOSED | {"SecurityGroupIngress": [RULE | {"CidrIp": "0.0.0.0/0"}]}),
            "0.0.0.0/0 may send tcp 22-22 to One (ingress)",
        ),
        (resource(GROUP, CLOSED), resource(GROUP), "One (egress) may send all traffic to 0.0.0.0/0"),
    ],
)
def test_whoever_gets_a_right_to_a_resource_is_named(before: dict[str, Any], after: dict[str, Any], wider: str) -> None:
    assert compare({"One": before}, {"One": after}).rights.wider == [wider]


def test_a_group_whose_rules_are_resources_of_their_own_sends_nothing_else() -> None:
    rule = resource(EGRESS, RULE | {"GroupId": {"Fn::GetAtt": ["One", "GroupId"]}, "CidrIp": "10.0.0.0/8"})
    rights = compare({"One": resource(GROUP)}, {"One": resource(GROUP), "Rule": rule}).rights
    assert rights.wider == ["One (egress) may send tcp 22-22 to 10.0.0.0/8"]
    assert rights.narrower == ["no longer: One (egress) may send all traffic to 0.0.0.0/0"]


def found(changes: dict[str, StackChange], *more: str) -> Comparison:
    return Comparison(changes=changes, stacks=frozenset({*changes, *more}))


def page(**configurations: Comparison) -> str:
    return format_page("HEAD and the working tree", [], configurations)


def update(logical_id: str, *values: ValueChange) -> ResourceChange:
    return ResourceChange(kind=Kind.UPDATED, type=QUEUE, logical_id=logical_id, values=values)


LATER = ValueChange(("DelaySeconds",), 1, 2)


def test_equal_configurations_are_one_line() -> None:
    assert page(plain=found({}), wide=found({})) == "HEAD and the working tree\nequal: plain, wide"


def test_the_same_change_is_shown_once_with_where_it_is() -> None:
    both = {name: StackChange(resources=(update("One", LATER), update("Two", LATER))) for name in ("grid", "search")}
    assert page(plain=found(both), wide=found({"grid": both["grid"]}, "search")).splitlines()[1:] == [
        "changed: plain, wide",
        "",
        "Resources updated in place:",
        f"  {QUEUE}: One, Two [grid; search in plain]",
        "    DelaySeconds: 1 -> 2",
    ]


def test_a_stack_that_comes_or_goes_is_a_line_and_its_rights_are_listed() -> None:
    changes = compare_stacks({"old": {"Resources": {}}}, {"new": {"Resources": {"One": attached(GET)}}})
    text = page(plain=found(changes))
    assert "is new (resources: 1) [new]" in text
    assert "is in BASE alone: `cdk deploy` leaves it as it is, and deleting it is up to you [old]" in text
    assert "Role may s3:GetObject on arn:b/* [new]" in text
    assert POLICY not in text


def test_what_cloudformation_refuses_and_what_is_lost_come_first() -> None:
    change = compare({"Old": resource(QUEUE, {"QueueName": "a"})}, {"New": resource(QUEUE, {"QueueName": "a"})})
    headings = [line for line in page(plain=found({"stack": change})).splitlines() if line.endswith(":")]
    assert headings == ["CloudFormation refuses:", "Data that is not kept:", "Resources replaced:"]


def test_long_lists_are_cut_and_the_document_has_all() -> None:
    values = [ValueChange((f"P{number}",), number, None) for number in range(MOST_VALUES + 2)]
    changes = {"stack": StackChange(resources=tuple(update(f"Q{at}", *values) for at in range(MOST_IDS + 3)))}
    text = page(plain=found(changes))
    assert "and 3 more [stack]" in text
    assert "... and 2 more" in text
    document = to_document("title", [], {"plain": found(changes)})
    (one, *_) = document["configurations"]["plain"]["stacks"]["stack"]["resources"]
    assert (one["kind"], len(one["values"])) == ("updated in place", MOST_VALUES + 2)
    assert json.loads(json.dumps(document))["configurations"]["plain"]["why_not"] == ""


def test_pins_that_differ_are_named(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for tree, pin in ((old, "boto3==1"), (new, "boto3==2")):
        (tree / "lambda").mkdir(parents=True)
        (tree / "requirements.txt").write_text("aws-cdk-lib==2")
        (tree / "lambda" / "requirements.txt").write_text(pin)
    assert compare_pins(old, new) == ["lambda/requirements.txt"]
    assert "lambda/requirements.txt" in format_page("title", compare_pins(old, new), {}).splitlines()[1]


def test_a_commit_is_put_beside_the_working_tree_as_it_was(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    (repository / "file").write_text("later")
    (repository / "build").mkdir()
    tree = check_out("HEAD", tmp_path / "tree", repository)
    assert not (tree / "file").exists()
    assert (tree / "build" / "layer").readlink() == repository / "build" / "layer"
    with pytest.raises(NoCommit, match="git has no commit v9"):
        check_out("v9", tmp_path / "other", repository)


def test_a_commit_that_is_not_there_ends_the_command_before_anything_is_synthesised() -> None:
    with pytest.raises(SystemExit, match="git has no commit no-such-commit"):
        main(["no-such-commit"])


def copy(folder: Path) -> Path:
    """A tree of the product like this one."""
    for file in inputs():
        if file.is_relative_to(ROOT / "build"):
            continue
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    (folder / "build").symlink_to(ROOT / "build")
    return folder


def change(tree: Path, file: str, text: str, becomes: str) -> None:
    source = (tree / file).read_text()
    assert text in source
    (tree / file).write_text(source.replace(text, becomes, 1))


@pytest.mark.at_length
def test_two_trees_of_the_product_differ_in_what_was_changed(tmp_path: Path) -> None:
    """The first does not know a setting. The other changes a queue, and a function, whose assets are masked."""
    before, after = copy(tmp_path / "old"), copy(tmp_path / "new")
    change(
        before,
        "app.py",
        "= settings.deployment\n",
        "= settings.deployment\n    assert not settings.catalogue, 'what?'\n",
    )
    change(after, "stacks/parts/queue.py", "cdk.Duration.days(14)", "cdk.Duration.days(4)")
    change(after, "lambda/reaper/policy.py", '"""', '"""Changed. ')
    configurations: dict[str, dict[str, Any]] = {"plain": {}, "catalogue": {"catalogue": True}, "odd": {"odd": 1}}
    compared = compare_trees(before, after, configurations, tmp_path / "work")
    assert compared["catalogue"].why_not == "not synthesizable in BASE: AssertionError: what?"
    assert compared["odd"].why_not.startswith("not synthesizable in BASE and the working tree: trainyard.odd is not")
    changes = compared["plain"].changes
    assert {(one.type, one.kind) for stack in changes.values() for one in stack.resources} == {(QUEUE, Kind.UPDATED)}
    assert {value.describe() for stack in changes.values() for one in stack.resources for value in one.values} == {
        "MessageRetentionPeriod: 1209600 -> 345600"
    }
    assert not any(one.others or one.rights.wider or one.rights.narrower for one in changes.values())
