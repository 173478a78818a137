// Package history keeps past readings and the changes of states and outputs in a folder.
//
// Readings are collected in memory and written once a minute, so that a memory card lasts. A loss
// of power loses the last minute at most. There are three tiers: raw readings, minutes and hours.
// Each is a row of segment files with compressed blocks, and each has its own age. The raw tier is
// also the log from which the others are completed after a crash.
//
// Import fills a tier of its own, beside them.
//
// All times in the files are milliseconds of recorded time: they continue over restarts and
// never go back, whatever the wall clock does. One process's run is an epoch. Each block has its
// epoch's offset from recorded time to wall time, and whether that was known. The newest block of an
// epoch decides, so that the past gets its right time once the clock is known, unless a later epoch
// shows that it was wrong: see epoch.go.
package history
