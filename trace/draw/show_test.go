package draw
import ("testing";"os";"ovs-offline/test/answers")
func TestShow(t *testing.T){ os.MkdirAll("/tmp/draw-out",0o755); for n,a:=range answers.All(){ f,_:=os.Create("/tmp/draw-out/"+n+".svg"); if err:=SVG(f,&a);err!=nil{t.Error(err)}; f.Close(); f,_=os.Create("/tmp/draw-out/"+n+".html"); if err:=HTML(f,&a);err!=nil{t.Error(err)}; f.Close()}}
