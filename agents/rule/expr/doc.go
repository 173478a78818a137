// Package expr compiles and evaluates the conditions and the formulas of rules: a typed language over the
// values of points, with units, ages, times of day and a third truth value, unknown.
//
// A text is at most 1 KiB, a program at most 128 nodes, nested at most 32 deep. There are no
// loops, and an evaluation allocates nothing. Types and units are checked when a text is
// compiled; every mistake is an *Error with its place and the fix.
//
//	condition  = conjunct { "or" conjunct } .
//	conjunct   = negation { "and" negation } .
//	negation   = "not" negation | comparison .
//	comparison = sum [ relation sum | "between" sum ( ".." | "and" ) sum ] .
//	relation   = "==" | "is" | "!=" | "<" | "<=" | ">" | ">=" .
//	sum        = product { ( "+" | "-" ) product } .
//	product    = primary { ( "*" | "/" ) primary } .
//	primary    = "(" condition ")" | address | number | length | time | text | word
//	           | "on" | "off" | "true" | "false" | "now" | "sunrise" | "sunset" | "weekday"
//	           | "month" | "date" | "holiday" | date
//	           | ( "min" | "max" ) "(" sum "," sum { "," sum } ")" | "abs" "(" sum ")"
//	           | "clamp" "(" sum "," sum "," sum ")"
//	           | ( "age" | "known" ) "(" address ")" | window "(" address "," length ")" .
//	window     = "mean" | "least" | "greatest" | "change" | "count" .
//	address    = name "/" name [ "/" name ] .           (* device/point, site/device/point *)
//	number     = [ "-" ] digits [ "." digits ] [ unit ] . (* a UCUM code: 5 Cel, 40 % *)
//	length     = 90s, 10m, 1h30m, at most 2400h .       (* no space before the unit *)
//	time       = 6:00, 22:30 .                          (* of day *)
//	date       = 2026-12-24, or of every year dec 24 .
//	text       = '"' characters '"' .                   (* no escapes *)
//
// Names contain - and a / joins them, so arithmetic - and / need spaces around them. A word is
// a value of the state that it is compared with (door/position == open), a weekday, mon to sun, or a month, jan to dec.
//
// Units: compared and added numbers have the same unit. A number without a unit multiplies or
// divides any number; equal units divide to a number without one. Lengths of time add, and
// numbers scale them. A length shifts a time of day, over midnight too (sunset - 20m).
//
// between includes both ends; of times of day it excludes the end, and goes over midnight
// (22:00..6:00); of weekdays it goes over Sunday (fri..mon), of months and dates of every
// year over New Year. Times of day and lengths have no ==.
//
// Unknown: a reading that is stale, faulty, missing or of another type, a time while the clock
// is not set, a division by zero and every result that is not finite. A comparison with an
// unknown operand is unknown. "unknown and off" is off, "unknown or on" is on.
package expr
