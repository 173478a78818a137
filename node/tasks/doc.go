// Package tasks accepts tasks for the hosted agents of a site and stores them durably. No task is
// lost, and none of its steps is made twice, however the site ends.
//
// It imports the vocabulary of agents, node/hosted for the agents that take tasks, and node/state
// for the disk. The node and its clock are passed in.
package tasks
