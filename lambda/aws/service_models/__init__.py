"""botocore's service models, cut to what a function uses of them: a whole model takes tens of MB, and makes objects of every member."""
