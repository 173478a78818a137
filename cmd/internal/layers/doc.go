// Package layers tests the architecture: which package may import which, how long the
// wiring may be, and what replaced modules and the security policy must keep.
package layers
