// Package routine implements the kind of agent that other systems call a script or a scene: steps
// that its owner wrote. They run once per request.
package routine
