"""`python -m gateway.cli`: the command line without its console script."""

from gateway.cli.main import main

main()
