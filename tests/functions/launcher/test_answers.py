"""What each error code of RunInstances means for the ladder, what it closes beside its rung, and what a person reads of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.errors import CapacityPending, CapacityUnavailable, InvalidRequest, QuotaExceeded
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Market, Rung
from launcher import policy
from launcher.answers import MEANINGS, PASSES_WALKS, TABLE, Reach, explain_answers, find_meaning
from tests.builders import INTENT, JOB, NOW, rung
from tests.fakes.yard import ABROAD as YARD_ABROAD
from tests.functions.launcher.walking import Clock, FakeEc2, Store, walker

NO_CAPACITY, QUOTA, MISTAKE = LaunchOutcome.NO_CAPACITY, LaunchOutcome.QUOTA, LaunchOutcome.MISTAKE
CLOSED, UNKNOWN, RENEW = LaunchOutcome.CLOSED, LaunchOutcome.UNKNOWN, LaunchOutcome.RENEW
DOCUMENTED: dict[LaunchOutcome, str] = {
    NO_CAPACITY: "InsufficientInstanceCapacity InsufficientCapacity InsufficientHostCapacity InsufficientCapacityOnHost "
    "InsufficientReservedInstanceCapacity InsufficientReservedInstancesCapacity InsufficientFreeAddressesInSubnet "
    "InsufficientAddressCapacity InsufficientVolumeCapacity ReservationCapacityExceeded UnfulfillableCapacity SpotMaxPriceTooLow "
    "Unsupported VolumeTypeNotAvailableInZone InvalidAvailabilityZone InvalidZone.NotFound "
    "InvalidCapacityReservationState.PendingActivation",
    QUOTA: "VcpuLimitExceeded InstanceLimitExceeded MaxSpotInstanceCountExceeded MaxIOPSLimitExceeded VolumeLimitExceeded "
    "NetworkInterfaceLimitExceeded ResourceLimitExceeded PlacementGroupLimitExceeded",
    CLOSED: "PendingVerification OptInRequired Blocked AccountDisabled",
    UNKNOWN: "RequestLimitExceeded BandwidthLimitExceeded InternalError InternalFailure ServerInternal ServiceUnavailable Unavailable "
    "RetryableError RequestExpired InvalidSecurity.RequestHasExpired Throttling ThrottlingException EC2ThrottledException",
    RENEW: "IdempotentInstanceTerminated",
    MISTAKE: "AuthFailure UnauthorizedOperation TagPolicyViolation TagLimitExceeded IdempotentParameterMismatch InvalidAMIID.NotFound "
    "InvalidAMIID.Unavailable InvalidAMIID.Malformed InvalidBlockDeviceMapping InvalidGroup.NotFound InvalidSecurityGroupID.NotFound "
    "InvalidIamInstanceProfileArn.Malformed InvalidLaunchTemplateId.NotFound InvalidLaunchTemplateId.VersionNotFound "
    "InvalidParameter InvalidParameterCombination InvalidParameterDependency InvalidParameterValue InvalidPlacementGroup.Unknown "
    "InvalidSubnetID.NotFound InvalidSubnet IncorrectState IncorrectInstanceState InvalidState ConcurrentTagAccess "
    "CreditSpecificationUpdateInProgress CustomerKeyHasBeenRevoked EncryptedVolumesNotSupported BootForVolumeTypeUnsupported "
    "AttachmentLimitExceeded VolumeIOPSLimit UnknownVolumeType PrivateIpAddressLimitExceeded InvalidInterface.IpAddressLimitExceeded "
    "SecurityGroupLimitExceeded SecurityGroupsPerInterfaceLimitExceeded SecurityGroupsPerInstanceLimitExceeded ResourceCountExceeded "
    "RequestResourceCountExceeded InvalidCapacityReservationId.NotFound InvalidCapacityReservationId.Malformed UnsupportedOperation "
    "InvalidInstanceType InvalidTenancy UnsupportedTenancy MissingParameter UnknownParameter ValidationError InvalidClientTokenId "
    "SignatureDoesNotMatch DeclarativePoliciesAccessDeniedException VPCIdNotSpecified VPCResourceNotSpecified",
}
"""Of the list of EC2's error codes, those that a launch can meet."""
CODES = [(code, outcome) for outcome, codes in DOCUMENTED.items() for code in codes.split()]


@pytest.mark.parametrize(("code", "outcome"), CODES)
def test_each_documented_code_has_its_meaning_and_a_sentence(code: str, outcome: LaunchOutcome) -> None:
    assert code in MEANINGS
    found = find_meaning(code)
    assert found.outcome is outcome
    assert found.says.endswith((".", ")."))


def test_no_code_is_in_the_table_twice() -> None:
    assert len(MEANINGS) == sum(len(codes.split()) for _, codes in TABLE)


def test_every_refusal_and_every_limit_of_the_table_closes_more_than_one_rung() -> None:
    """The same answer for each place would cost a call each."""
    assert [
        code for code, one in MEANINGS.items() if one.outcome in {QUOTA, MISTAKE, CLOSED} and one.reach is Reach.RUNG
    ] == ["IdempotentParameterMismatch"]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("NewGpuLimitExceeded", QUOTA),
        ("MaxAcceleratorCountExceeded", QUOTA),
        ("InsufficientAcceleratorCapacity", NO_CAPACITY),
        ("InsufficientCapacityException", NO_CAPACITY),
        ("SomeThrottlingError", UNKNOWN),
        ("Server.InsufficientInstanceCapacity", NO_CAPACITY),
        ("Client.VolumeLimitExceeded", QUOTA),
        ("Client.RequestLimitExceeded", UNKNOWN),
    ],
)
def test_a_code_that_nobody_has_seen_is_judged_by_its_form(code: str, outcome: LaunchOutcome) -> None:
    assert find_meaning(code).outcome is outcome


@pytest.mark.parametrize(
    ("status", "outcome"), [(0, MISTAKE), (400, MISTAKE), (403, MISTAKE), (500, UNKNOWN), (503, UNKNOWN)]
)
def test_one_without_a_form_by_whose_fault_it_is(status: int, outcome: LaunchOutcome) -> None:
    assert find_meaning("SomethingNobodyHasSeen", status=status).outcome is outcome


def test_a_status_changes_nothing_of_a_code_that_is_known() -> None:
    assert find_meaning("InsufficientInstanceCapacity", status=500).outcome is NO_CAPACITY
    assert find_meaning("InsufficientReservedInstancesCapacity", status=500).outcome is NO_CAPACITY
    assert find_meaning("IdempotentParameterMismatch", status=500).outcome is MISTAKE


def test_a_key_that_cannot_be_used_is_no_error_of_ec2() -> None:
    assert find_meaning("Client.InternalError").outcome is MISTAKE
    assert find_meaning("InternalError").outcome is UNKNOWN


# What they close

G5, G4, P4 = "g5.xlarge", "g4dn.xlarge", "p4d.24xlarge"
HERE, NEXT = rung("eu-central-1a", G5), rung("eu-central-1b", G5)
OTHER_TYPE, OTHER_FAMILY = rung("eu-central-1a", G4), rung("eu-central-1a", P4)
SPOT = replace(rung("eu-central-1a", G5), market=Market.SPOT)
ABROAD = rung("us-east-1a", G5, region="us-east-1")
RUNGS = (HERE, NEXT, OTHER_TYPE, OTHER_FAMILY, SPOT, ABROAD)


def walk(*rungs: Rung, number: int = 1) -> Intent:
    steps = tuple(Step(rung=one, request={"InstanceType": one.instance_type}) for one in rungs)
    return replace(INTENT, steps=steps, walk=number)


def answer(intent: Intent, place: int, code: str, message: str = "so EC2 says") -> Intent:
    said = LaunchAnswer(outcome=find_meaning(code, message).outcome, at=NOW, code=code, message=message)
    return policy.record_answer(intent, place, said, recovering=False)


@pytest.mark.parametrize(
    ("code", "open_still"),
    [
        ("InsufficientInstanceCapacity", (NEXT, OTHER_TYPE, OTHER_FAMILY, SPOT, ABROAD)),
        ("VolumeTypeNotAvailableInZone", (NEXT, OTHER_TYPE, OTHER_FAMILY, SPOT, ABROAD)),
        ("VcpuLimitExceeded", (OTHER_FAMILY, SPOT, ABROAD)),
        ("MaxIOPSLimitExceeded", (ABROAD,)),
        ("VolumeLimitExceeded", (ABROAD,)),
        ("NetworkInterfaceLimitExceeded", (ABROAD,)),
        ("NewGpuLimitExceeded", (ABROAD,)),
        ("PendingVerification", (ABROAD,)),
        ("Blocked", (ABROAD,)),
        ("CustomerKeyHasBeenRevoked", (ABROAD,)),
        ("InvalidLaunchTemplateId.NotFound", (ABROAD,)),
        ("InvalidSubnetID.NotFound", (NEXT, ABROAD)),
        ("UnsupportedOperation", (OTHER_TYPE, OTHER_FAMILY, SPOT, ABROAD)),
        ("SomethingNobodyHasSeen", (OTHER_TYPE, OTHER_FAMILY, SPOT, ABROAD)),
        ("IdempotentParameterMismatch", ()),
    ],
)
def test_an_answer_closes_what_it_is_about(code: str, open_still: tuple[Rung, ...]) -> None:
    intent, found = walk(*RUNGS), list[Rung]()
    place: int | None = 0
    while place is not None:
        intent = answer(intent, place, code if place == 0 else "InsufficientInstanceCapacity")
        place = intent.next_place
        found += [] if place is None else [intent.steps[place].rung]
    assert tuple(found) == open_still


def test_what_the_spot_quota_closes_leaves_on_demand() -> None:
    intent = answer(walk(SPOT, replace(NEXT, market=Market.SPOT), HERE), 0, "MaxSpotInstanceCountExceeded")
    assert intent.next_place == 2


# What a person reads


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "MaxIOPSLimitExceeded",
            "quota of IOPS of disks is used up in the region: raise it in Service Quotas (Amazon EBS)",
        ),
        ("VolumeLimitExceeded", "quota of disk storage"),
        ("VcpuLimitExceeded", "quota of on-demand vCPUs for this family"),
        ("MaxSpotInstanceCountExceeded", "quota of spot vCPUs for this family"),
        ("PendingVerification", "AWS has not verified the account"),
        ("Blocked", "AWS has blocked the account"),
        ("OptInRequired", "is not subscribed"),
    ],
)
def test_a_limit_of_the_account_in_every_place_is_named_and_no_mistake_of_the_request(code: str, words: str) -> None:
    error = policy.find_error(answer(walk(HERE), 0, code), NOW)
    assert isinstance(error, QuotaExceeded)
    assert words in str(error)


def test_a_limit_of_one_region_beside_missing_capacity_in_another_is_waited_for() -> None:
    intent = answer(answer(walk(HERE, ABROAD), 0, "MaxIOPSLimitExceeded"), 1, "InsufficientInstanceCapacity")
    assert isinstance(policy.find_error(intent, NOW), CapacityPending)
    late = policy.find_error(intent, intent.patience_until)
    assert isinstance(late, CapacityUnavailable)
    assert "quota of IOPS of disks" in str(late)
    assert "too few of these machines free" in str(late)


def test_a_refusal_says_what_it_means_once() -> None:
    intent = answer(answer(walk(HERE, OTHER_TYPE), 0, "UnauthorizedOperation"), 1, "UnauthorizedOperation")
    error = policy.find_error(intent, NOW)
    assert isinstance(error, InvalidRequest)
    assert str(error).count("A policy denies the launch") == 1


def test_of_a_code_that_nobody_has_seen_ec2s_own_words_are_all_that_is_said() -> None:
    error = policy.find_error(answer(walk(HERE), 0, "SomethingNobodyHasSeen", "no, said EC2"), NOW)
    assert isinstance(error, InvalidRequest)
    assert str(error).endswith("g5.xlarge: SomethingNobodyHasSeen: no, said EC2")
    assert explain_answers([]) == ""


# What passes by itself

PROFILE = "Value (arn:aws:iam::123456789012:instance-profile/node) for parameter iamInstanceProfile.arn is invalid."


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("InvalidIamInstanceProfile.NotFound", ""),
        ("InvalidParameterValue", PROFILE),
        ("InvalidLaunchTemplateId.VersionNotFound", ""),
        ("InvalidSubnetID.NotFound", ""),
        ("InvalidAMIID.Unavailable", ""),
        ("IncorrectState", ""),
        ("ConcurrentTagAccess", ""),
    ],
)
def test_what_has_just_been_made_is_asked_for_again_and_refused_after_some_walks(code: str, message: str) -> None:
    assert isinstance(policy.find_error(answer(walk(HERE), 0, code, message), NOW), CapacityPending)
    last = answer(walk(HERE, number=PASSES_WALKS), 0, code, message)
    assert isinstance(policy.find_error(last, NOW), CapacityPending)
    late = policy.find_error(answer(walk(HERE, number=PASSES_WALKS + 1), 0, code, message), NOW)
    assert isinstance(late, InvalidRequest)
    assert find_meaning(code, message).says in str(late)


def test_another_wrong_value_is_refused_at_once() -> None:
    assert not find_meaning("InvalidParameterValue", "Value (0) for parameter volumeSize is invalid.").passes


def test_no_job_hears_of_an_empty_place_where_something_of_the_deployment_is_new() -> None:
    """Only codes of missing machines say something to others (`empty_places.EMPTY`)."""
    store, ec2 = Store(), FakeEc2(["InvalidLaunchTemplateId.NotFound"] * 9)
    one = walker(store, ec2, Clock())
    with pytest.raises(CapacityPending):
        one.launch(JOB, 1)
    assert len(ec2.calls) == len({step.rung.region for step in store.held[1].intent.steps})


def test_a_limit_of_iops_in_one_region_launches_in_another() -> None:
    ladder = (rung(), rung("eu-central-1b"), rung("eu-west-1a", region=YARD_ABROAD.region))
    job = replace(JOB, ladder=ladder, places={**JOB.places, YARD_ABROAD.region: YARD_ABROAD})
    ec2 = FakeEc2(["MaxIOPSLimitExceeded"])
    _, step = walker(Store(), ec2, Clock()).launch(job, 1)
    assert (step.rung.region, len(ec2.calls)) == ("eu-west-1", 2)
