"""The build's script under bash, with stand-ins for the image tool and the AWS command line."""
