"""The running program: session workers, settings, the composition root and the control socket."""
