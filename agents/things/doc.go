// Package things offers the site's devices as one agent: a tool per verb and an
// enum per thing, so that the number of tools depends on the kinds wired up and
// never on how many devices there are.
//
// It knows devices and what an agent is offered. It knows no protocol and no
// permission; outputs it moves only through the guard.
package things
