"""The real program in a child process, over loopback sockets, killed with SIGKILL."""
