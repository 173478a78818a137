// Package sim simulates devices with plausible physics, for first steps, examples and tests.
//
// Each sample computes the physics up to the present, so that an idle simulation costs
// nothing. The same seed with the same calls at the same times gives the same readings.
package sim
