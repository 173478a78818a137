// Package layers tests the architecture: the permitted imports, the length of the wiring, and the
// properties that replaced modules and the security policy must keep.
package layers
