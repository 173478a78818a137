// Package routine is the kind of agent that other systems call a script or a scene: steps that
// its owner wrote, which are made once when somebody asks for them.
package routine
