"""A job with an image beside the same job without one, and the same image as a line of a grid."""
