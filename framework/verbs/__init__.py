"""One module a verb of the command line; each has `run(arguments) -> ExitCode`."""
