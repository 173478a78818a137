// Package sim is a board that is not there: devices with believable physics, for
// trying things out, for examples and for tests.
//
// The physics are computed when somebody looks, up to the present moment, so that
// an idle simulation costs nothing. The same seed, and the same calls at the same
// times, give the same readings.
package sim
