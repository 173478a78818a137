// Package config reads agentsite.yaml: strictly, and whole before a pin moves.
//
// The type of a value comes from its key, never from how the value looks, so off
// is a bool where a bool belongs, quoted or not. Each driver's own keys are
// decoded into its driver.Config; the rest of a device (its pace and what its
// owner allows each output) is understood here. Every error names file, line and
// column, shows the line and says what to do.
//
// Hardware, guards and networks may not enter: a file is checked without them.
package config
