// Package group presents several sites as one Site: the address of a point is
// site/device/point, so that ten sites do not make ten times the tools.
//
// The answers of a site are data. Names have to match the name pattern; every text is one
// of few small words or a known sentence of ours, and is left out otherwise; lists are
// bounded. Only what an agent answers to its asker, the result and the question of a task, passes as
// it was written. How a site is reached, and by whose key, is known to the caller who passes it in.
package group
