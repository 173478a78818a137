// Package remote is the kind of agent that stands for another site. The hosted agents that may ask
// that site have its points among theirs, as site/device/point; each has a connection of its own,
// by a key of its own, so that the other site can name the agent.
//
// The caller passes in how a site is reached, and by which key. What a site
// answers is data, and package group cleans it.
package remote
