"""The grid's child: one container for each line, which submits the line's training in its region, watches it and writes its record.

Its role needs these permissions and no others:
- home bucket: s3:GetObject on `grids/*` (plan, work lists, stop mark, records), s3:PutObject on records, and s3:ListBucket with that
  prefix, without which S3 answers 403 for an object that is not there yet;
- in every region: sagemaker:CreateTrainingJob, AddTags, DescribeTrainingJob, StopTrainingJob, ListTags on trainings of the
  deployment's names; iam:PassRole of the training role to sagemaker.amazonaws.com;
- batch:DescribeJobs (which cannot be limited to resources).
"""
