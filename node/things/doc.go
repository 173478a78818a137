// Package things keeps the descriptions of other things that are registered with a site, as a W3C
// Web of Things directory does. They are data of others: checked for their form, bounded, and never
// told to a model.
package things
