w=$1; h=$2
timeout 90 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=$w,$h --screenshot=/root/page/s$w.png file:///root/page/results.html 2>/dev/null
