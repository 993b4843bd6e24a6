"""``python -m bid_ros.robots.ur.twin``: a controller twin of its own."""

from bid_ros.robots.ur.twin.pendant import main

raise SystemExit(main())
