//go:build release

package sim

// testKeys refuses outputs_file: the superuser may drive a configuration of somebody else's to safe.
const testKeys = false
