"""The numbers of a submission, computed from what it handed in and from the portal's own runs."""
