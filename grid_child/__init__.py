"""The grid's child: one container for each line, which submits the line's training, to SageMaker in its region or as an execution of the
Train machine, watches it and writes its record.

Its role needs these permissions and no others:
- home bucket: s3:GetObject on `grids/*` (plan, work lists, stop mark, records), s3:PutObject on records, and s3:ListBucket with that
  prefix, without which S3 answers 403 for an object that is not there yet;
- in every region: sagemaker:CreateTrainingJob, AddTags, DescribeTrainingJob, StopTrainingJob, ListTags on trainings of the
  deployment's names; iam:PassRole of the training role to sagemaker.amazonaws.com;
- in the home region: states:StartExecution on the Train machine, DescribeExecution and StopExecution on its executions of the names of
  lines, and s3:GetObject on the report.json and job.json of their jobs;
- batch:DescribeJobs (which cannot be limited to resources);
- with a cluster of Kubernetes: eks:DescribeCluster of it, s3:PutObject on `grids/*/submitted/*` of the home bucket, and s3:GetObject on
  what pods note.
"""
