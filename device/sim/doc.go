// Package sim simulates devices with believable physics, for first steps, examples and
// tests.
//
// The physics are computed at each sample, up to the present moment, so that an idle
// simulation costs nothing. The same seed, and the same calls at the same
// times, give the same readings.
package sim
