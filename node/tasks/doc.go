// Package tasks takes tasks for the hosted agents of a site and keeps them on the disk, so that
// none is lost, and no step of one is made twice, whatever ends the site.
//
// It imports the vocabulary of agents, node/hosted for the agents that take tasks, and node/state
// for the disk. The node and its clock are passed in.
package tasks
