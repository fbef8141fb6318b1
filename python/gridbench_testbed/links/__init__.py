"""Network namespaces behind shaped links, and hosts with an sshd in each."""
