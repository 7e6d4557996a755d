"""Rights of the grid's functions, its children and its trainings: one named statement per right, for one deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import aws_cdk as cdk
from aws_cdk import region_info

from contract import grid, keys, names, tags
from contract.search import ANY_SEARCH
from contract.training_facts import LOG_GROUP
from stacks.parts.container_rights import list_containers
from stacks.parts.image_rights import LOG_IN, PULL
from stacks.parts.item_rights import note_regions, read_admission
from stacks.parts.kubernetes_rights import KubernetesRights
from stacks.parts.right import Right
from stacks.parts.rights import READ, UNPROTECTED, Rights, arn_of, below, within

SAGEMAKER = "sagemaker.amazonaws.com"
NAMES = "Names of trainings begin with the deployment's; the condition keeps to the regions of the settings."
JOBS = "Batch gives each job a new id; the condition requires the deployment's tag on it."


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRights:
    """Statements for one deployment's grids; `rights` has the statements that others use too."""

    rights: Rights
    regions: tuple[str, ...]
    """Regions in which trainings may run."""
    repositories: tuple[str, ...]
    """Short names."""
    base_accounts: dict[str, str]
    """As in `GridEnvironment`."""
    data_buckets: tuple[str, ...]
    pull_accounts: tuple[str, ...]
    """Other accounts whose images trainings may pull: the accounts of AWS's containers, and those of the settings."""
    kubernetes: KubernetesRights | None = None
    """About the cluster of lines on Kubernetes; None without one."""

    def plan(self) -> list[Right]:
        """Reads everything that lines name and writes the plan; starts nothing."""
        rights = self.rights
        return [
            *self.check(),
            rights.home("ReadManifests", READ, grid.ANY_GRID, ANY_SEARCH),
            rights.home("WriteThePlan", ["s3:PutObject"], *grid.PLANNED),
            rights.bytes("CopyCode", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], grid.ANY_CODE),
            note_regions(rights),
        ]

    def write_manifests(self) -> Right:
        """Writes the rows of a query as the grid's own manifest."""
        return replace(
            self.rights.home("WriteManifestsOfQueries", ["s3:PutObject"], grid.ANY_QUERIED), apart="Catalogue"
        )

    def check(self) -> list[Right]:
        """Reads everything that lines name; changes nothing."""
        rights = self.rights
        return [
            rights.home("ReadUploads", READ, f"{keys.UPLOADS}*"),
            read_admission(rights),
            rights.list_home(),
            rights.list_bytes(),
            *rights.data(self.data_buckets),
            replace(self._images("CheckImages", "ecr:BatchGetImage"), apart="Images"),
            *list_containers(self.base_accounts, self._here()),
            Right(
                "DescribeTheChildImage",
                ["ecr:DescribeImages"],
                [self._arn("ecr", self.rights.home_region, f"repository/{self._platform}")],
            ),
            rights.prices(),
            *([self.kubernetes.see_types()] if self.kubernetes else ()),
        ]

    def collect(self, topic: str, key: str) -> list[Right]:
        """Reads the plan and the records, writes the results, ends what is left; starts nothing."""
        rights = self.rights
        return [
            rights.home("ReadGrids", ["s3:GetObject"], grid.ANY_GRID),
            rights.home("WriteGridResults", ["s3:PutObject"], grid.ANY_RECORD, *grid.COLLECTED),
            rights.list_home(),
            self._look_at_trainings("sagemaker:DescribeTrainingJob", "sagemaker:ListTags"),
            self._stop_trainings(),
            *self._watch_jobs(),
            *self.end_jobs(),
            *rights.publish(topic, key),
            *(self.kubernetes.collect() if self.kubernetes else ()),
        ]

    def child(self, training_role: str) -> list[Right]:
        """Creates, watches and stops trainings under the deployment's names; writes records and nothing else."""
        tagged = {f"aws:RequestTag/{tags.DEPLOYMENT}": self.rights.deployment}
        creating = {"sagemaker:TaggingAction": "CreateTrainingJob"}
        return [
            self.rights.home("ReadThePlan", ["s3:GetObject"], grid.ANY_GRID),
            self.rights.home("WriteRecords", ["s3:PutObject"], grid.ANY_RECORD),
            self.rights.list_home(),
            Right("CreateTrainings", ["sagemaker:CreateTrainingJob"], self._trainings, NAMES, self._here(tagged)),
            Right(
                "TagWhileCreating", ["sagemaker:AddTags"], self._trainings, NAMES, self._here({**tagged, **creating})
            ),
            # Has no condition on tags: whether a name is taken, and by whom, must be asked about a stranger's training as well.
            self._look_at_trainings("sagemaker:DescribeTrainingJob", "sagemaker:ListTags"),
            self._stop_trainings(),
            Right("StartJobs", ["states:StartExecution"], [self.rights.train_machine]),
            *self._watch_jobs(),
            Right(
                "PassTheTrainingRole",
                ["iam:PassRole"],
                [training_role],
                conditions={"StringEquals": {"iam:PassedToService": SAGEMAKER}},
            ),
            self._look_at_jobs("batch:DescribeJobs"),
            *(self.kubernetes.child() if self.kubernetes else ()),
        ]

    def start_child(self, log_group_arn: str) -> list[Right]:
        """For the role with which Fargate starts a child: its image and its log."""
        platform = self._arn("ecr", self.rights.home_region, f"repository/{self._platform}")
        return [
            LOG_IN,
            Right("PullTheChildImage", PULL, [platform]),
            Right("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group_arn]),
        ]

    def training(self) -> list[Right]:
        """Everything that the code of a line may do. It has no right on networks: a line's interfaces would carry no tag of ours, so the
        right could not be limited to them; Plan refuses lines that ask for a network."""
        rights = self.rights
        read = (f"{keys.UPLOADS}*", grid.ANY_GRID, grid.ANY_CODE)
        return [
            rights.home("ReadUploads", ["s3:GetObject"], f"{keys.UPLOADS}*"),
            below(rights.list_home(), f"{keys.UPLOADS}*"),
            rights.bytes("ReadBytes", ["s3:GetObject"], *read),
            rights.bytes("WriteModelsAndCheckpoints", ["s3:PutObject", "s3:DeleteObject"], grid.ANY_GRID),
            below(rights.list_bytes(), *read),
            *rights.data(self.data_buckets),
            LOG_IN,
            self._images("PullImages", *PULL),
            Right(
                "WriteMetrics",
                ["cloudwatch:PutMetricData"],
                ["*"],
                "Metrics are not resources; the condition keeps to SageMaker's own namespace.",
                {"StringEquals": {"cloudwatch:namespace": LOG_GROUP}},
            ),
        ]

    def training_logs(self) -> list[Right]:
        """Lets trainings write their own streams."""
        streams = (
            "Each training has its own streams in SageMaker's own group, which is called the same in every region; their names "
            "begin with the training's."
        )
        ours = grid.training_prefix(self.rights.deployment)
        group = self._arn("logs", "*", f"log-group:{LOG_GROUP}")
        making, writing = (
            ["logs:CreateLogGroup", "logs:DescribeLogStreams"],
            ["logs:CreateLogStream", "logs:PutLogEvents"],
        )
        return [
            Right("CreateTheLogGroup", making, [group, f"{group}:*"], streams, self._here()),
            Right("WriteTrainingLogs", writing, [f"{group}:log-stream:{ours}*"], streams, self._here()),
        ]

    def machine(self) -> list[Right]:
        """For the Grid machine, beside its functions: submits the children's jobs, and learns that they have ended."""
        rule = self._arn("events", self.rights.home_region, "rule/StepFunctionsGetEventsForBatchJobsRule")
        definition = self._batch(f"job-definition/{names.child_definition(self.rights.deployment)}")
        submitted = [definition, f"{definition}:*", self._queue, self._batch("job/*")]
        tagged = {"StringEquals": {f"aws:RequestTag/{tags.DEPLOYMENT}": self.rights.deployment}}
        new = "A job has no id yet and its definition a number more with each deploy; the condition requires our tag on it."
        return [
            Right("SubmitChildren", ["batch:SubmitJob"], submitted, new, tagged),
            Right("TagBatchJobs", ["batch:TagResource"], [self._batch("job/*")], new, tagged),
            self._look_at_jobs("batch:DescribeJobs"),
            self._terminate_jobs(),
            Right("ManageTheSyncRule", ["events:PutTargets", "events:PutRule", "events:DescribeRule"], [rule]),
        ]

    def end_jobs(self) -> list[Right]:
        """Finds and terminates jobs of the deployment's grids."""
        return [self._look_at_jobs("batch:ListJobs", "batch:DescribeJobs"), self._terminate_jobs()]

    def end_everywhere(self) -> list[Right]:
        """For what ends trainings whose grid is over: trainings outlive the settings of their region."""
        reason = "Trainings outlive the settings of their region; their names begin with the deployment's."
        ours = {"StringEquals": {f"aws:ResourceTag/{tags.DEPLOYMENT}": self.rights.deployment}}
        listing = "Listing supports no resource-level permissions, and a training outlives the settings of its region."
        look = ["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"]
        return [
            Right("ListTrainings", ["sagemaker:ListTrainingJobs"], ["*"], listing),
            Right("DescribeTrainings", look, self._trainings, reason),
            Right(
                "StopOurTrainings",
                ["sagemaker:StopTrainingJob"],
                self._trainings,
                reason,
                {**ours, "Null": UNPROTECTED},
            ),
            *self.end_jobs(),
            *([self.kubernetes.ask_cluster()] if self.kubernetes else ()),
        ]

    def jobs_of_lines(self, name: str, *actions: str) -> Right:
        """Allows `actions` on executions of the Train machine under the names of lines, and on no others."""
        ours = f"{names.machine(self.rights.deployment)}:{self._prefix}*"
        every = self._arn("states", self.rights.home_region, f"execution:{ours}")
        return Right(name, actions, [every], "Executions come and go; the machine is ours, and lines' names begin so.")

    def _watch_jobs(self) -> list[Right]:
        """Sees how the jobs of lines end, and ends them."""
        job = keys.JobPrefix(f"{self._prefix}*")
        return [
            self.jobs_of_lines("WatchJobsOfLines", "states:DescribeExecution", "states:StopExecution"),
            self.rights.home("ReadReportsOfLines", ["s3:GetObject"], job.description, job.result),
        ]

    @property
    def _prefix(self) -> str:
        return grid.training_prefix(self.rights.deployment)

    def grid_executions(self, name: str, *actions: str, called: str = "*") -> Right:
        """Allows `actions` on executions of the Grid machine whose names fit `called`."""
        every = self._arn("states", self.rights.home_region, f"execution:{self._machine}:{called}")
        return Right(name, actions, [every], "Executions come and go; the machine is ours.")

    def list_grids(self) -> Right:
        return Right("ListGrids", ["states:ListExecutions"], [self.machine_arn])

    @property
    def machine_arn(self) -> str:
        """ARN of the Grid machine, by its name."""
        return self._arn("states", self.rights.home_region, f"stateMachine:{self._machine}")

    def _look_at_trainings(self, *actions: str) -> Right:
        return Right("DescribeTrainings", actions, self._trainings, NAMES, self._here())

    def _stop_trainings(self) -> Right:
        ours = {f"aws:ResourceTag/{tags.DEPLOYMENT}": self.rights.deployment}
        conditions = {**self._here(ours), "Null": UNPROTECTED}
        return Right("StopTrainings", ["sagemaker:StopTrainingJob"], self._trainings, NAMES, conditions)

    def _look_at_jobs(self, *actions: str) -> Right:
        reason = "Listing jobs supports no resource-level permissions; the condition keeps to the home region."
        return Right("DescribeBatchJobs", actions, ["*"], reason, within(self.rights.home_region))

    def _terminate_jobs(self) -> Right:
        ours = {"StringEquals": {f"aws:ResourceTag/{tags.DEPLOYMENT}": self.rights.deployment}}
        return Right("TerminateBatchJobs", ["batch:TerminateJob"], [self._batch("job/*")], JOBS, ours)

    def _images(self, name: str, *actions: str) -> Right:
        """Allows `actions` on the deployment's repositories, in every region, and on those of the other accounts."""
        wanted = [
            self._arn("ecr", "*", f"repository/{names.repository(self.rights.deployment, one)}")
            for one in self.repositories
        ]
        wanted += [arn_of("ecr", "*", account, "repository/*") for account in dict.fromkeys(self.pull_accounts)]
        reason = (
            "Each region has repositories of these names, AWS and the accounts of the settings have others; the condition keeps "
            "to the regions of the settings."
        )
        return Right(name, actions, wanted, reason, self._here())

    @property
    def _trainings(self) -> list[str]:
        return [self._arn("sagemaker", "*", f"training-job/{grid.training_prefix(self.rights.deployment)}*")]

    @property
    def _queue(self) -> str:
        return self._batch(f"job-queue/{names.grid_queue(self.rights.deployment)}")

    @property
    def _platform(self) -> str:
        return names.repository(self.rights.deployment, names.PLATFORM)

    @property
    def _machine(self) -> str:
        return names.grid_machine(self.rights.deployment)

    def _batch(self, resource: str) -> str:
        return self._arn("batch", self.rights.home_region, resource)

    def _arn(self, service: str, region: str, resource: str) -> str:
        return arn_of(service, region, cdk.Aws.ACCOUNT_ID, resource)

    def _here(self, also: Mapping[str, str] | None = None) -> dict[str, object]:
        """Conditions that limit a request to the regions of the settings, and to `also`."""
        return {"StringEquals": {**(also or {}), **within(*self.regions)["StringEquals"]}}


def container_accounts(regions: Sequence[str]) -> tuple[str, ...]:
    """Accounts of AWS's Deep Learning Containers in the regions that the CDK knows."""
    found = (region_info.Fact.find(region, region_info.FactName.DLC_REPOSITORY_ACCOUNT) for region in regions)
    return tuple(account for account in found if account)
