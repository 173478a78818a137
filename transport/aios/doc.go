// Package aios implements the kind of agent that reports the agents of a site to an AIOS registry
// and takes tasks for them from there. It uses three endpoints, which it polls
// (agiresearch/Cerebrum.Server, cerebrum/node). The registry authenticates nobody: all its tasks
// belong to one principal, with the permission that the owner configured.
package aios
