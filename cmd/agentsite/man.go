//go:build man

package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// extraCommands is what only the making of packages has: a command that writes the manual
// pages, with the date of SOURCE_DATE_EPOCH, into a folder.
func extraCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use: "man FOLDER", Hidden: true, Args: exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			if err != nil {
				return usagef("SOURCE_DATE_EPOCH: %w", err)
			}
			date := time.Unix(seconds, 0).UTC()
			cmd.Root().DisableAutoGenTag = true
			header := doc.GenManHeader{Section: "1", Source: "agentsite " + version, Manual: "agentsite", Date: &date}
			return doc.GenManTree(cmd.Root(), &header, args[0])
		},
	}}
}
