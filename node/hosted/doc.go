// Package hosted runs the agents that the owner configured on the site itself: it starts,
// reloads and stops them with the configuration, and gives each the permissions of its own
// entry and no others.
//
// It imports agents, node/access and node/config. The list of kinds and the site that the
// agents ask are passed in.
package hosted
