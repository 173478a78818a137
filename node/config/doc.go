// Package config parses agentsite.yaml strictly, and completely before a pin moves.
//
// The type of a value comes from its key, never from its spelling, so off is a bool where
// the key takes one, quoted or not. Each driver's own keys are decoded into its
// driver.Config; this package decodes the rest of a device: how often it is read and what its
// outputs may do. Every error names file, line and column, shows the line and says what to
// do.
//
// The package knows no hardware, guard or network: it checks a file without them.
package config
