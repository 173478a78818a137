//go:build !release

package sim

// testKeys permits outputs_file, by which a configuration writes a file.
const testKeys = true
