package board

import "agentsite/device/driver"

// GPIOOf returns where the lines of b come from.
func GPIOOf(b *Board) GPIO { return b.machine.GPIO }

var ConsumerOf = consumerOf

func Permissions(b *Board, may func(path string) bool) []driver.Finding { return b.permissions(may) }
