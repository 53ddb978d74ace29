"""What back ends in this process share: slots that hold arrays, their lifetimes, workspaces, calls
and sweeps.

Reads plan.kinds, plan, backends.
"""
