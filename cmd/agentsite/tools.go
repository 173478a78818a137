package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/transport/mcp/client"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tools", GroupID: groupNetwork, Args: noArgs,
		Short: "List the tools for agents",
		RunE: a.onSite(func(ctx context.Context, s *session, _ []string) error {
			list, err := s.tools(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string][]client.Tool{"tools": list})
			}
			var rows [][]string
			for _, t := range list {
				rows = append(rows, []string{t.Name, arguments(t), firstSentence(t.Description)})
			}
			return table(a.out, []string{"TOOL", "ARGUMENTS", "DESCRIPTION"}, rows)
		}),
	}
}

func (s *session) tools(ctx context.Context) ([]client.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.Tools(ctx)
	return list, s.app.unreached(err)
}

// arguments lists a tool's arguments, the required ones first, the others in brackets.
func arguments(t client.Tool) string {
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if t.Input.Decode(&schema) != nil {
		return "?"
	}
	all := schema.Required
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			all = append(all, "["+name+"]")
		}
	}
	return strings.Join(all, " ")
}

func (a *app) callCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use: "call TOOL [JSON]", GroupID: groupNetwork,
		Short: "Call a tool as an agent would",
		Long: `Call a tool as an agent would and print its structured result. JSON is an object with the
arguments; "-" reads it from standard input.`,
		Example: `  agentsite call read_points '{"points":["greenhouse/temperature"]}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"TOOL", "JSON"}[:max(1, min(len(args), 2))]...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			args, err := a.jsonObject(words[1:])
			if err != nil {
				return err
			}
			return a.with(func(s *session) error {
				res, err := s.call(cmd.Context(), words[0], args)
				var refused *client.RequestError
				if errors.As(err, &refused) && refused.Kind == "invalid" {
					return fmt.Errorf("%w (agentsite tools)", err)
				}
				if err != nil {
					return err
				}
				return a.printResult(res, picture)
			})
		},
		ValidArgsFunction: a.completeTools,
	}
	a.keyFlag(cmd)
	cmd.Flags().StringVar(&picture, "out", "", "save the image or sound of the result to this file")
	return cmd
}

// jsonObject reads a tool's arguments, which are sent unchanged.
func (a *app) jsonObject(words []string) (jsontext.Value, error) {
	text := "{}"
	if len(words) == 1 {
		text = words[0]
	}
	if text == "-" {
		const limit = 1 << 20 // more than a site reads
		b, err := io.ReadAll(io.LimitReader(a.in, limit))
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	v := jsontext.Value(text)
	if !v.IsValid() || v.Kind() != '{' { // as a site reads JSON: unique names, UTF-8
		return nil, usagef(`the arguments must be a JSON object with unique names, in UTF-8, such as '{"points":["greenhouse/temperature"]}', not %.60q`, text)
	}
	return v, nil
}

// printResult prints a tool's result and saves its file.
func (a *app) printResult(res client.Answer, file string) error {
	texts := res.Texts
	switch {
	case res.JSON == nil:
	case a.json:
		if err := a.printLine(res.JSON); err != nil {
			return err
		}
		texts = nil // they repeat the result
	default:
		v := jsontext.Value(res.JSON).Clone()
		if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		texts = []string{string(v)}
	}
	for _, t := range texts {
		if _, err := fmt.Fprintln(a.out, cleanLines(t)); err != nil {
			return err
		}
	}
	return a.save(res.Files, file)
}

// save writes the first image or sound to the file, if there is a name for it.
func (a *app) save(files []client.File, file string) error {
	switch {
	case len(files) == 0 && file != "":
		return coded{exitFailure, fmt.Errorf("the result has no image or sound that could be saved to %s", file)}
	case len(files) == 0:
		return nil
	case file == "":
		a.note("the result has a file of type %s (%s): save it with --out FILE", files[0].MIME, byteSize(float64(len(files[0].Data))))
		return nil
	}
	return os.WriteFile(file, files[0].Data, 0o600)
}

func (a *app) connectCommand() *cobra.Command {
	var client string
	cmd := &cobra.Command{
		Use: "connect", GroupID: groupNetwork, Args: noArgs,
		Short: "Connect an MCP client, over standard input and output",
		Long: `Connect an MCP client, which starts this command and speaks MCP on its standard input and
output. The command presents all sites of one of your agents, and the site on this
machine, as one set of tools. It uses the agent's key and permissions ("agentsite agents
allow").

With --site, --peer or AGENTSITE_SITE it presents that site only. With --data, or without --as while your
assistant has no permission anywhere, it presents the site on this machine only.

--config prints what to write into the file of a client, with this program's path and the
other flags of the command, and connects nothing.`,
		Example: "  agentsite connect\n  agentsite connect --as watchman\n  agentsite connect --config claude-desktop",
		RunE: func(cmd *cobra.Command, _ []string) error {
			only := cmp.Or(a.namedSite(), a.peer)
			switch {
			case a.url != "":
				return usagef("connect takes no --url: an HTTP client connects to the site directly")
			case a.data != "" && a.as != "":
				return usagef("--as is for the sites of an agent: leave out --data")
			case client != "":
				return a.printClientEntry(client)
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			if a.data == "" {
				agent, some, err := peer.Presented(a.as, only)
				if err != nil {
					return err
				}
				if some {
					a.noteEnds(agent, only)
					return peer.ConnectAs(cmd.Context(), agent, folder, only, version, a.in, a.out)
				}
			}
			err = peer.Connect(cmd.Context(), folder, a.in, a.out)
			if err != nil {
				return a.undialled(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&client, "config", "", "print the entry for this client: "+strings.Join(clientNames(), ", "))
	cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions(clientNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// noteEnds tells the client's log, in its last week, when an agent's permission on a site ends.
func (a *app) noteEnds(agent peer.Person, only string) {
	known, _ := agent.Contacts().List()
	for _, k := range known {
		words, until := k.Permission()
		if left := time.Until(until); !until.IsZero() && left < lastWeek && (only == "" || only == k.Name) {
			a.note("the permission on %s (%s) ends %s: agentsite agents allow renews it",
				k.Name, words, strings.TrimPrefix(ends(until), "until "))
		}
	}
}

// firstSentence shortens a description for a list.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}
