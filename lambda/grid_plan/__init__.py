"""Checks every line of a manifest, and makes a plan of it for the children: for Plan, and for searches, whose rounds are manifests.

Checking needs exactly these rights: in the home bucket, to read `uploads/`, `grids/`, `searches/` and the note that closes admission,
and to list; in the data buckets, to read and to list; in the buckets of bytes, to list (the region of a bucket, and whether there is
anything under an address); ECR's BatchGetImage on what trainings may pull, and DescribeImages on the platform's repository in home; the
Price List's GetProducts.
"""
