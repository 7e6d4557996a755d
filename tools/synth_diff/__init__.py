"""`make synth-diff`: what a change of the code changes in CloudFormation: what is replaced or deleted, and which rights widen."""
