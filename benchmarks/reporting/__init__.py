"""The benchmark report: jobs that are measured one by one, and the page that is drawn from them."""
