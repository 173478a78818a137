//go:build man

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// extraCommands returns the commands that only builds of packages have: man writes the manual
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
			if err := doc.GenManTree(cmd.Root(), &header, args[0]); err != nil {
				return err
			}
			return addSections(args[0])
		},
	}}
}

// addSections adds the sections that cobra does not write to each manual page: the files and the
// exit status, which are the same for every command.
func addSections(folder string) error {
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("\n.SH FILES\n")
	for _, f := range [][2]string{
		{"agentsite.yaml", "the configuration, in the folder where the site is started; /etc/agentsite/agentsite.yaml of the service"},
		{"/var/lib/agentsite", "the data folder of the service: key, permissions, journal"},
		{"~/.local/state/agentsite", "the data folder of a site that you start yourself"},
		{"~/.config/agentsite", "your own key, the sites that you know and your realms"},
	} {
		fmt.Fprintf(&text, ".TP\n.I %s\n%s\n", f[0], f[1])
	}
	text.WriteString(".SH EXIT STATUS\n")
	for _, s := range []struct {
		code int
		says string
	}{
		{exitOK, "it is done"},
		{exitFailure, "anything that has no number of its own"},
		{exitUsage, "the command line, an argument or the configuration is wrong"},
		{exitDenied, "you may not"},
		{exitUnsafe, "the guard refused: the emergency stop, an interlock, a limit"},
		{exitBusy, "somebody else holds the output, or too many ask"},
		{exitAway, "no site, or a device of it, answers just now"},
		{exitUnknown, "it may or may not have been done, or came too late"},
	} {
		fmt.Fprintf(&text, ".TP\n.B %d\n%s\n", s.code, s.says)
	}
	for _, page := range pages {
		f, err := os.OpenFile(page, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text.String())
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
