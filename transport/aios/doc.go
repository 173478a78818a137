// Package aios is the kind of agent that reports the agents of a site to an AIOS registry, and takes
// tasks for them from there, by three endpoints that a node polls: agiresearch/Cerebrum.Server,
// cerebrum/node. The registry authenticates nobody, so that its tasks are those of one principal,
// which may what the owner wrote.
package aios
