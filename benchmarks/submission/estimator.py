"""Submits one training with the SageMaker Python SDK: `python estimator.py REQUEST`, a file with CreateTrainingJob's arguments.

Runs in an environment of the SDK's own, with nothing of this project.
"""

import json
import sys
from pathlib import Path

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

request = json.loads(Path(sys.argv[1]).read_text())
algorithm, resources = request["AlgorithmSpecification"], request["ResourceConfig"]
estimator = Estimator(
    image_uri=algorithm["TrainingImage"],
    role=request["RoleArn"],
    instance_count=resources["InstanceCount"],
    instance_type=resources["InstanceType"],
    volume_size=resources["VolumeSizeInGB"],
    max_run=request["StoppingCondition"]["MaxRuntimeInSeconds"],
    max_retry_attempts=request["RetryStrategy"]["MaximumRetryAttempts"],
    input_mode=algorithm["TrainingInputMode"],
    output_path=request["OutputDataConfig"]["S3OutputPath"],
    checkpoint_s3_uri=request["CheckpointConfig"]["S3Uri"],
    checkpoint_local_path=request["CheckpointConfig"]["LocalPath"],
    hyperparameters=request["HyperParameters"],
    environment=request["Environment"],
    metric_definitions=algorithm["MetricDefinitions"],
    tags=request["Tags"],
    # What it would add by itself, and what Plan does not ask for.
    disable_profiler=True,
    debugger_hook_config=False,
)
inputs = {}
for one in request["InputDataConfig"]:
    source = one["DataSource"]["S3DataSource"]
    inputs[one["ChannelName"]] = TrainingInput(
        source["S3Uri"], distribution=source["S3DataDistributionType"], input_mode=one["InputMode"]
    )
estimator.fit(inputs, wait=False, job_name=request["TrainingJobName"])
