"""Run ``python -m experiments.tuning``; processes are started with functions of another module."""

from experiments.tuning.tried import main

if __name__ == "__main__":
    main()
