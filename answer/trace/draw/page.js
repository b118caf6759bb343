const all = (open) => document.querySelectorAll(".stages details").forEach((d) => { d.open = open; });
document.getElementById("open").addEventListener("click", () => all(true));
document.getElementById("close").addEventListener("click", () => all(false));
document.getElementById("buttons").hidden = false;
